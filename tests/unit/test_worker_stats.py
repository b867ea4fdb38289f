"""A worker's pulse: what it counts, over which time, and how late its event loop is."""

import asyncio
from typing import Any

from tests.support.waiting import wait_until
from threadmark.state import RATE_WINDOW_S
from threadmark.workers.fleet.worker_stats import WorkerStats
from threadmark.workers.supervisor import LoopReport


class Clock:
    """A clock that the test moves."""

    now_s = 100.0

    def __call__(self) -> float:
        """The present."""
        return self.now_s


CLAIM: Any = object()
A_LOOP = LoopReport(name="sweep", completed_s=0.5, round_count=7, error_count=1, is_stale=False)
LOOPS_JSON = '[{"name":"sweep","age_s":0.5,"error_count":1,"is_stale":false}]'


def test_claims_are_counted_for_ever_and_for_a_while() -> None:
    """All since the start, and those of the window alone."""
    clock = Clock()
    stats = WorkerStats(clock, lambda: [A_LOOP])
    stats.claimed([CLAIM, CLAIM], orphan_count=1)
    clock.now_s += RATE_WINDOW_S - 1
    stats.claimed([CLAIM], orphan_count=0)
    stats.claimed([], orphan_count=0)
    expected = {"claim_count": 3, "orphan_count": 1, "loop_lag_us": 0, "loops": LOOPS_JSON}
    assert stats.counts() == {**expected, "recent_claim_count": 3}

    clock.now_s += 1

    assert stats.counts() == {**expected, "recent_claim_count": 1}


async def test_a_loop_that_answers_late_is_seen_as_lag() -> None:
    """While it answers nothing the lag grows; once it has answered, the time that it took is reported."""
    clock = Clock()
    stats = WorkerStats(clock)
    stats.watch(asyncio.get_running_loop())
    assert stats.counts()["loop_lag_us"] == 0

    clock.now_s += 2.5

    assert stats.counts()["loop_lag_us"] == 2_500_000
    await wait_until(lambda: stats._asked_at is None, description="the loop to answer")
    clock.now_s += 60
    assert stats.counts()["loop_lag_us"] == 2_500_000
