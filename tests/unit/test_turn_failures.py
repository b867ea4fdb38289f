"""Turns that break off: whose fault it was, and how long the run rests."""

import psycopg
from sqlalchemy.exc import OperationalError

from threadmark.state import OutcomeUnknown
from threadmark.workers.turn.action import ORPHAN_COUNT_MAX
from threadmark.workers.turn.turn_failures import BREAK_COUNT_MAX, REST_S_MAX, blamed, rest_us


def test_a_defect_is_the_runs() -> None:
    """It will raise again: the run shows it and is counted."""
    failure = blamed(KeyError("speech"))

    assert failure is not None
    assert (failure.error, failure.message) == ("KeyError", "'speech'")


def test_a_cancellation_from_inside_is_a_defect_too() -> None:
    """A worker never cancels its turns."""
    failure = blamed(None)

    assert failure is not None
    assert failure.error == "CancelledError"


def test_a_database_that_is_away_is_nobodys_fault() -> None:
    """An outage of any length quarantines nothing."""
    assert blamed(OperationalError("SELECT 1", {}, psycopg.OperationalError("connection refused"))) is None
    assert blamed(OutcomeUnknown()) is None


def test_each_rest_is_longer_up_to_a_bound_and_the_number_of_turns_has_an_end() -> None:
    """The run is settled by a turn of its own before that; what cannot even be settled is left to an operator."""
    rests = [rest_us(count) for count in range(1, BREAK_COUNT_MAX)]

    assert rests == sorted(rests, key=lambda each: each or 0)
    assert rests[0] == 1_000_000
    assert all(each is not None and each <= REST_S_MAX * 1_000_000 for each in rests)
    assert BREAK_COUNT_MAX > ORPHAN_COUNT_MAX + 1
    assert [rest_us(BREAK_COUNT_MAX), rest_us(BREAK_COUNT_MAX + 9)] == [None, None]
