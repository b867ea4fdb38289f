"""The demonstration's verdict: it does not say OK where a promise was broken."""

import io
from typing import Any

import pytest

from threadmark.examples.refund.demo import account
from threadmark.examples.refund.demo.screen import Screen

TOOLS = ("lookup_order", "check_policy", "email_customer", "refund", "confirm")


def a_line(tool: str, attempt: int = 1, key: str | None = None) -> dict[str, Any]:
    """A line of the effects file."""
    return {"tool": tool, "attempt": attempt, "idempotency_key": key or f"key-of-{tool}"}


def a_story(status: str = "recorded", tokens_saved: int = 7) -> dict[str, Any]:
    """What the API tells of the steps."""
    steps = [{"key": f"tool-{number}", "name": tool, "status": "recorded"} for number, tool in enumerate(TOOLS)]
    steps[0]["status"] = status
    return {"items": steps, "totals": {"tokens_saved_by_replay": tokens_saved}}


GOOD_LINES = [*map(a_line, TOOLS), a_line("email_customer", 2)]
GOOD: dict[str, Any] = {"told": a_story(), "lines": GOOD_LINES, "last_words": "Done.\n{}", "journal_holds": True}


def test_a_story_that_kept_its_promises_has_nothing_to_complain_of() -> None:
    """One repeated call of a keyed tool, with the same key, is what was promised."""
    assert list(account.broken_promises(**GOOD)) == []


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        ({"last_words": "You said: hello"}, "did not finish"),
        ({"journal_holds": False}, "hash chain"),
        ({"told": a_story(status="in_doubt")}, "is in_doubt"),
        ({"told": a_story(tokens_saved=0)}, "paid for model calls"),
        ({"lines": [*GOOD_LINES, a_line("refund", 2)]}, "refund was called 2 times"),
        ({"lines": [*GOOD_LINES, a_line("lookup_order", 2)]}, "lookup_order was called 2 times"),
        ({"lines": GOOD_LINES[1:]}, "lookup_order was called 0 times"),
        ({"lines": [*GOOD_LINES[:-1], a_line("email_customer", 2, "another key")]}, "different idempotency keys"),
    ],
)
def test_each_broken_promise_is_named(broken: dict[str, Any], complaint: str) -> None:
    """A payment that was made twice, a recorded call made again, a key that changed: each is a complaint, and alone."""
    (found,) = account.broken_promises(**{**GOOD, **broken})

    assert complaint in found


class Terminal(io.StringIO):
    """Somewhere that shows colours."""

    def isatty(self) -> bool:
        """Yes."""
        return True


@pytest.mark.parametrize(("out", "is_colourful"), [(io.StringIO(), False), (Terminal(), True)])
def test_colours_are_for_terminals(out: io.StringIO, is_colourful: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file or a pipe gets plain text."""
    monkeypatch.delenv("NO_COLOR", raising=False)

    Screen(out).verdict(["broken"], "")

    assert ("\x1b[" in out.getvalue()) == is_colourful
