"""The refund story, with the server killed around every write and every effect of it.

Each server is killed once, and the next one, on the same port and data directory, finishes the story that the kill
interrupted before the next story begins. CRASH_POINT="after write 7" tells only the story that was killed there.
"""

import asyncio
import os
from collections.abc import Iterable

from tests.crash.client import Client
from tests.crash.doomed import DoomedServer
from tests.crash.launching import Launcher
from tests.crash.plan import AroundPoint, Plan, Point, When, at_each, parse_plan
from tests.support.scenario import Conversation, Plot, play
from tests.support.scenario_checks import violations

#: Points that the kills have to find; fewer would mean that they are not counted any more.
KILL_COUNT_MIN: dict[Point, int] = {"write": 18, "effect": 5}
CHOSEN = os.environ.get("CRASH_POINT")


async def test_the_story_ends_the_same_wherever_the_server_is_killed(launcher: Launcher) -> None:
    """Nothing acknowledged is lost, no recorded step runs again, one key per step, and the journal verifies."""
    if CHOSEN is not None:
        await _kills(launcher, [parse_plan(CHOSEN)])
        return
    # Side by side, because each of them spends much of the time starting.
    async with asyncio.TaskGroup() as thread_locks:
        for when in ("before", "after"):
            thread_locks.create_task(_lane(launcher, when))


async def _lane(launcher: Launcher, when: When) -> None:
    for point, count_min in KILL_COUNT_MIN.items():
        kill_count = await _kills(launcher, at_each(when, point))
        assert kill_count >= count_min, f"{kill_count} kills {when} each {point}: they are not counted"


async def _kills(launcher: Launcher, plans: Iterable[Plan]) -> int:
    """Tell a story for each plan, until the story ends before the kill; how many were killed."""
    async with DoomedServer(launcher) as server, server.kept_alive() as client:
        expected = await play(client, Plot(order_id="uninterrupted"), server.effects)
        assert violations(expected, server.effects(), server.deaths, expected) == []
        for plan in plans:
            if not await _was_killed(server, client, plan, expected):
                break
        return len(server.deaths)


async def _was_killed(server: DoomedServer, client: Client, plan: Plan, expected: Conversation) -> bool:
    """Whether the plan's point came before the story's end; whatever came, the story holds."""
    death_count = len(server.deaths)
    server.plan(plan)
    conversation = await play(client, _plot(plan), server.effects)
    server.plan(None)
    broken = violations(conversation, server.effects(), server.deaths, expected)
    assert broken == [], f"killed {plan} (replay with CRASH_POINT='{plan}'):\n" + "\n".join(broken)
    return len(server.deaths) > death_count


def _plot(plan: Plan) -> Plot:
    """Each way to approve, and each way to settle a doubt, meets each kind of kill."""
    nth = plan.nth if isinstance(plan, AroundPoint) else 0
    return Plot(
        order_id=str(plan).replace(" ", "-"),
        approve_by="answer" if nth % 2 else "resume",
        settle_by="looking" if nth % 4 < 2 else "verify",
    )
