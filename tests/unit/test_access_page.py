"""docs/access.md says what the code does: its scopes and its bounds are the code's own."""

from pathlib import Path

import pytest

from threadmark.app.access import Scope
from threadmark.app.access.gate import FAILURES_PER_KEY, FAILURES_PER_SOURCE
from threadmark.app.access.issue import OVERLAP_S, OVERLAP_S_MAX
from threadmark.app.access.ring import RECHECK_S
from threadmark.app.edge.drain import DRAIN_BYTES_MAX
from threadmark.app.http import strict_json
from threadmark.app.listing.pages import PAGE_SIZE_MAX
from threadmark.app.requests.idempotency import KEY_CHARS_MAX
from threadmark.workers.settings.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "access.md").read_text()
DEFAULTS = Settings.from_environment({})
DAY_S = 24 * 3600


def test_every_scope_is_explained() -> None:
    """One row each, in order."""
    firsts = [line.split("|")[1].strip() for line in PAGE.splitlines() if line.startswith("| `")]

    assert [f"`{scope}`" for scope in Scope] == [first for first in firsts if first.strip("`") in set(Scope)]


@pytest.mark.parametrize(
    "said",
    [
        f"`THREADMARK_RATE_BURST` ({DEFAULTS.rate_burst}) at once",
        f"`THREADMARK_RATE_PER_S` ({DEFAULTS.rate_per_s:g}) a second",
        f"`THREADMARK_BODY_BYTES_MAX` ({DEFAULTS.body_bytes_max // 2**20} MiB)",
        f"| {FAILURES_PER_SOURCE} at once, then 1 a second |",
        f"| {FAILURES_PER_KEY} at once, then 1 in 3 seconds |",
        f"| nesting of JSON | {strict_json.DEPTH_MAX} |",
        f"| keys of all objects of a body | {strict_json.KEY_COUNT_MAX:,} |",
        f"| page | {PAGE_SIZE_MAX} rows |",
        f"| {KEY_CHARS_MAX} visible ASCII characters |",
        f"within {RECHECK_S:g} seconds in all others",
        f"{OVERLAP_S_MAX // DAY_S} days at most",
        f"Up to {DRAIN_BYTES_MAX // 2**20} MiB of a body",
    ],
)
def test_every_bound_is_the_codes_own(said: str) -> None:
    """A bound that changes in the code changes on the page."""
    assert said in PAGE
    assert OVERLAP_S == DAY_S
