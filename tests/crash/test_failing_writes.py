"""The refund story on a disk that refuses one write: the server lives, and the story goes on.

CRASH_POINT="instead of write 7" tells only the story in which that write failed.
"""

import asyncio
import os
from collections.abc import Iterable

from tests.crash.doomed import DoomedServer
from tests.crash.launching import Launcher
from tests.crash.plan import Plan, Point, at_each, parse_plan
from tests.support.scenario import Plot, play
from tests.support.scenario_checks import violations

#: Points that the failures have to find; fewer would mean that they are not counted any more.
FAILURE_COUNT_MIN: dict[Point, int] = {"write": 18, "effect": 5}
CHOSEN = os.environ.get("CRASH_POINT")
#: A turn that broke off is given back by the next sweep.
SOON = {"THREADMARK_SWEEP_S": "0.1"}


async def test_the_story_ends_the_same_whichever_write_fails(launcher: Launcher) -> None:
    """A commit that fails, or an effect, costs an attempt, and nothing else: no restart, no loss, no second payment."""
    if CHOSEN is not None:
        await _failure_count(launcher, [parse_plan(CHOSEN)])
        return
    async with asyncio.TaskGroup() as group:
        counts = {
            point: group.create_task(_failure_count(launcher, at_each("instead of", point)))
            for point in FAILURE_COUNT_MIN
        }
    for point, count_min in FAILURE_COUNT_MIN.items():
        assert counts[point].result() >= count_min, f"failures instead of each {point} are not counted"


async def _failure_count(launcher: Launcher, plans: Iterable[Plan]) -> int:
    """Tell a story for each plan, until the story ends before the plan strikes; how many were struck."""
    failure_count = 0
    async with DoomedServer(launcher, SOON) as server, server.kept_alive() as client:
        expected = await play(client, Plot(order_id="undisturbed"), server.effects)
        for plan in plans:
            server.plan(plan)
            conversation = await play(client, Plot(order_id=str(plan).replace(" ", "-")), server.effects)
            broken = violations(conversation, server.effects(), server.deaths, expected)
            assert broken == [], f"failed {plan} (replay with CRASH_POINT='{plan}'):\n" + "\n".join(broken)
            if server.has_plan:
                break
            failure_count += 1
    return failure_count
