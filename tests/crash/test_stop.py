"""SIGTERM in the middle of a turn: the server ends by itself, nothing is lost, and the next one goes on."""

import asyncio
import signal
from dataclasses import dataclass

from tests.crash.doomed import Death, DoomedServer
from tests.crash.launching import Launcher
from tests.support.scenario import Plot, play
from tests.support.scenario_checks import violations
from tests.support.waiting import wait_until

WITHIN_GRACE_MS = 400
BEYOND_GRACE_MS = 3_000
STOP_S_MAX = 10.0


@dataclass(frozen=True, kw_only=True)
class Stopped:
    """The outcome of a story during which the server was stopped."""

    code: int
    attempts: list[int]  #: of the slow tool
    resolutions: list[str]


async def _stop(launcher: Launcher, tool: str, delay_ms: int, *signals: signal.Signals) -> Stopped:
    """Send the signals, one after the other, while the slow tool is being called; the story holds all the same."""
    plot = Plot(order_id="slow", slow=tool, delay_ms=delay_ms)
    async with DoomedServer(launcher) as server, server.kept_alive() as client:
        expected = await play(client, Plot(order_id="uninterrupted"), server.effects)
        playing = asyncio.create_task(play(client, plot, server.effects))
        await wait_until(lambda: _attempts(server, plot), description=f"a call of {tool}", timeout_s=30)
        for each in signals:
            server.send(each)
        await wait_until(lambda: server.deaths, description="the end of the server", timeout_s=STOP_S_MAX)
        conversation = await playing
        assert violations(conversation, server.effects(), server.deaths, expected) == []
        return Stopped(
            code=server.deaths[0].code, attempts=_attempts(server, plot), resolutions=conversation.resolutions
        )


def _attempts(server: DoomedServer, plot: Plot) -> list[int]:
    lines = [each for each in server.effects() if each["arguments"]["order_id"] == plot.order_id]
    return [each["attempt"] for each in lines if each["tool"] == plot.slow]


async def test_a_stop_finishes_what_fits_its_grace_and_abandons_the_rest(launcher: Launcher) -> None:
    """A call that ends in time is recorded and never made again; another is made again, or in doubt if `once` (F27)."""
    async with asyncio.TaskGroup() as group:
        finished = group.create_task(_stop(launcher, "refund", WITHIN_GRACE_MS, signal.SIGTERM))
        repeated = group.create_task(_stop(launcher, "email_customer", BEYOND_GRACE_MS, signal.SIGTERM))
        doubted = group.create_task(_stop(launcher, "refund", BEYOND_GRACE_MS, signal.SIGTERM))

    assert finished.result() == Stopped(code=0, attempts=[1], resolutions=[])
    assert repeated.result() == Stopped(code=0, attempts=[1, 2], resolutions=[])
    assert doubted.result() == Stopped(code=0, attempts=[1], resolutions=["happened"])


async def test_a_stop_that_is_cut_short_loses_nothing(launcher: Launcher) -> None:
    """A second signal or a kill during a stop loses nothing of the story (F27)."""
    impatient = "email_customer", BEYOND_GRACE_MS, signal.SIGTERM
    async with asyncio.TaskGroup() as group:
        twice = group.create_task(_stop(launcher, *impatient, signal.SIGTERM))
        killed = group.create_task(_stop(launcher, *impatient, signal.SIGKILL))

    assert twice.result() == Stopped(code=0, attempts=[1, 2], resolutions=[])
    assert killed.result() == Stopped(code=-signal.SIGKILL, attempts=[1, 2], resolutions=[])


async def test_an_idle_server_stops_and_says_that_all_is_well(launcher: Launcher) -> None:
    """Without anything to finish the exit code is 0, after SIGTERM and after SIGINT."""
    async with DoomedServer(launcher) as server:
        ends: list[Death] = []
        for each in (signal.SIGTERM, signal.SIGINT):
            await server.start()
            async with asyncio.timeout(STOP_S_MAX):
                ends.append(await server.end(each))

    assert [end.code for end in ends] == [0, 0]
