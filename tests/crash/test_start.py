"""Killed while it starts, a server starts the next time, over whatever it left."""

import signal

import pytest

from tests.crash.doomed import DoomedServer
from tests.crash.launching import Launcher
from tests.crash.plan import When, at_each

#: Migrations of each package, the first key, the worker's lease: fewer commits would mean that none is counted.
KILL_COUNT_MIN = 3


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_first_start_that_is_killed_around_any_commit_is_no_obstacle_to_the_next(when: When) -> None:
    """Whatever the first start has committed when it dies, the second finishes, and the key in the file works."""
    killed_count = 0
    async with Launcher() as launcher:
        for plan in at_each(when, "commit"):
            async with DoomedServer(launcher) as server:
                server.plan(plan)
                if await server.start():
                    break
                assert (await server.gone()).code == -signal.SIGKILL, f"{plan}:\n{server.log}"
                server.plan(None)

                assert await server.start(), f"killed {plan}:\n{server.log}"

                assert await server.opens(server.key), f"killed {plan}:\n{server.log}"
                killed_count += 1
    assert killed_count >= KILL_COUNT_MIN, "the commits of a start are not counted"
