"""Killed while it starts, a server starts the next time, over whatever it left."""

import asyncio
import signal
from collections.abc import Iterable

from tests.crash.doomed import DoomedServer
from tests.crash.launching import Launcher
from tests.crash.plan import Plan, at_each

#: Migrations of each package, the first key, the worker's lease: fewer commits would mean that none is counted.
KILL_COUNT_MIN = 3


async def test_a_first_start_that_is_killed_around_any_commit_is_no_obstacle_to_the_next(launcher: Launcher) -> None:
    """Whatever the first start has committed when it dies, the second finishes, and the key in the file works."""
    async with asyncio.TaskGroup() as group:
        befores = group.create_task(_kills(launcher, at_each("before", "commit")))
        afters = group.create_task(_kills(launcher, at_each("after", "commit")))

    assert min(befores.result(), afters.result()) >= KILL_COUNT_MIN, "the commits of a start are not counted"


async def _kills(launcher: Launcher, plans: Iterable[Plan]) -> int:
    """How many first starts were killed before one came through."""
    killed_count = 0
    for plan in plans:
        async with DoomedServer(launcher) as server:
            server.plan(plan)
            if await server.start():
                break
            assert (await server.gone()).code == -signal.SIGKILL, f"{plan}:\n{server.log}"
            server.plan(None)

            assert await server.start(), f"killed {plan}:\n{server.log}"

            assert await server.opens(server.key), f"killed {plan}:\n{server.log}"
            killed_count += 1
    return killed_count
