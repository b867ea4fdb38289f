"""Turns that break off: which of them the run is to blame for, and how long it rests before the next. Pure.

A turn that raises is a defect, in the code or in what it reads, and will raise again. Without a bound its run would be
released and claimed for ever.
"""

import asyncio

from threadmark.state import Failure, is_outage
from threadmark.workers.turn.action import ORPHAN_COUNT_MAX
from threadmark.workers.turn.step_execution import failure_of

__all__ = ["BREAK_COUNT_MAX", "blamed", "rest_us"]

#: Turns in a row without progress after which a run rests until an operator re-drives it. One more than may end before
#: the run is settled as quarantined: this is for runs that cannot even be settled.
BREAK_COUNT_MAX = ORPHAN_COUNT_MAX + 2
FIRST_REST_S = 1.0
REST_S_MAX = 60.0


def blamed(error: BaseException | None) -> Failure | None:
    """What broke the turn, as the run shows it; None where the database was away, which says nothing of the run."""
    if error is None:
        return failure_of(asyncio.CancelledError("the turn was cancelled from inside"))
    return None if is_outage(error) else failure_of(error)


def rest_us(count: int) -> int | None:
    """Microseconds until the next turn after `count` in a row that ended without progress; None: it is quarantined."""
    if count >= BREAK_COUNT_MAX:
        return None
    return round(min(FIRST_REST_S * 2.0 ** (count - 1), REST_S_MAX) * 1_000_000)
