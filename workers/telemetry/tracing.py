"""The port of tracing: it exports steps that are on disk to the collector of traces."""

from collections.abc import Sequence
from typing import Protocol

from threadmark.state import Recorded, Run
from threadmark.workers.settings.settings import Settings, SettingsRefused

__all__ = ["Tracer", "tracer_of"]


class Tracer(Protocol):
    """Neither call raises or waits for a network; `close` may take a few seconds."""

    def recorded(self, run: Run, entries: Sequence[Recorded]) -> None:
        """These entries of the run are on disk; reported again after a crash they make the same spans."""

    def close(self) -> None:
        """Send what is left."""


def tracer_of(settings: Settings) -> Tracer | None:
    """The tracer that the settings ask for; None without, and nothing of it is imported then."""
    if settings.otlp_traces_url is None:
        return None
    try:
        from threadmark.workers.telemetry.otel import open_tracer  # noqa: PLC0415 - an optional extra, which costs nothing where it is off
    except ImportError as error:
        raise SettingsRefused(
            "THREADMARK_OTLP_TRACES_URL is set, but OpenTelemetry is not installed: install threadmark[otel]"
        ) from error
    return open_tracer(settings.otlp_traces_url)
