"""Spans: which callers a trace is linked to, and that tracing costs nothing where it is off."""

import subprocess
import sys

import pytest

from tests.architecture.sources import ROOT
from threadmark.workers.settings.settings import Settings, SettingsRefused
from threadmark.workers.telemetry import tracing
from threadmark.workers.telemetry.spans import link_of, trace_id_of

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize("version", ["00", "01"])
def test_a_traceparent_names_the_span_of_the_caller(version: str) -> None:
    """As W3C Trace Context writes it."""
    assert link_of(f"{version}-{TRACE}-{SPAN}-01") == (int(TRACE, 16), int(SPAN, 16))


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "nonsense",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-{SPAN}-01",
    ],
    ids=["none", "empty", "nonsense", "short", "upper", "no-trace", "no-span", "version"],
)
def test_a_broken_traceparent_is_left_out(header: str | None) -> None:
    """A request is not refused for it."""
    assert link_of(header) is None


def test_a_run_has_one_trace_id_everywhere() -> None:
    """It follows from the run's id alone."""
    assert trace_id_of("run-1") == trace_id_of("run-1") != trace_id_of("run-2")
    assert 0 < trace_id_of("run-1") < 2**128


def test_nothing_is_imported_where_tracing_is_off() -> None:
    """The extra need not be installed, and a start does not pay for it."""
    code = (
        "import sys, threadmark.app.command_line\n"
        "from threadmark.workers.settings.settings import Settings\n"
        "from threadmark.workers.telemetry.tracing import tracer_of\n"
        "assert tracer_of(Settings.from_environment({})) is None\n"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_an_extra_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The start ends with a sentence."""
    monkeypatch.setitem(sys.modules, "threadmark.workers.telemetry.otel", None)
    settings = Settings.from_environment({"THREADMARK_OTLP_TRACES_URL": "http://127.0.0.1:4318/v1/traces"})

    with pytest.raises(SettingsRefused, match=r"install threadmark\[otel\]"):
        tracing.tracer_of(settings)
