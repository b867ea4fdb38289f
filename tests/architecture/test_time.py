"""Time is an argument: the lower packages receive the time from their callers."""

import ast
import re

from tests.architecture.sources import Source, dotted, imported_modules, snippet, sources

TIMELESS = ("compaction", "memory", "state")
#: Files that may look at the clock, with the reason.
MAY_LOOK: dict[str, str] = {}

CLOCK = re.compile(r"time\.time(_ns)?|(datetime\.)?(datetime|date)\.(now|utcnow|today)")


def looks_at_the_clock(file: Source) -> list[str]:
    """Places where the wall clock is read, or handed on to be read. Measuring a duration is not among them."""
    read = [(node, dotted(node)) for node in ast.walk(file.tree) if isinstance(node, ast.Attribute)]
    found = {
        (node.lineno, file.at(node, name))
        for node, name in [*imported_modules(file.tree), *read]
        if CLOCK.fullmatch(name)
    }
    return [finding for _, finding in sorted(found)]


def test_time_is_an_argument() -> None:
    """A rule that reads the clock cannot be replayed, nor tested without waiting: `now` is passed in."""
    files = [file for file in sources(*TIMELESS) if file.name not in MAY_LOOK]
    findings = [finding for file in files for finding in looks_at_the_clock(file)]

    assert not findings, "\n".join(findings)


def test_the_rule_sees_every_clock() -> None:
    """Imported by name, through its module, or handed on without a call."""
    clocks = snippet(
        "from time import time\n"
        "import time, datetime\n"
        "time.time_ns()\n"
        "datetime.datetime.now(tz)\n"
        "clock = datetime.utcnow\n"
        "time.monotonic(); func.now(); now()\n"
    )

    assert [finding.split(":")[1] for finding in looks_at_the_clock(clocks)] == ["1", "3", "4", "5"]
