"""Statuses of runs: which move may follow which, over the whole square."""

import pytest

from threadmark.state import MOVES, SETTLED, RunStatus

ENDS = {RunStatus.SUCCESS, RunStatus.ERROR, RunStatus.TIMEOUT, RunStatus.INTERRUPTED}
#: The rule once more, in the other spelling: what may come before.
BEFORE = {
    RunStatus.PENDING: {RunStatus.RUNNING},
    RunStatus.RUNNING: {RunStatus.PENDING},
    RunStatus.SUCCESS: {RunStatus.RUNNING},
    RunStatus.ERROR: {RunStatus.RUNNING},
    RunStatus.TIMEOUT: {RunStatus.RUNNING},
    RunStatus.INTERRUPTED: {RunStatus.RUNNING, RunStatus.PENDING},
}


@pytest.mark.parametrize("before", RunStatus)
@pytest.mark.parametrize("after", RunStatus)
def test_each_move_is_allowed_or_not(before: RunStatus, after: RunStatus) -> None:
    """A pending run begins, or is cancelled before; a running one ends or is let go; what has ended stays ended."""
    assert (after in MOVES[before]) == (before in BEFORE[after])


def test_a_status_without_moves_is_settled() -> None:
    """Exactly the four ends."""
    assert SETTLED == ENDS


def test_every_status_can_be_reached() -> None:
    """From pending, where every run begins."""
    reached, ahead = {RunStatus.PENDING}, [RunStatus.PENDING]
    while ahead:
        new = MOVES[ahead.pop()] - reached
        reached |= new
        ahead += new

    assert reached == set(RunStatus)
