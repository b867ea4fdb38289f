"""Ends at random instants: of the server while it moves several stories, and of the clients that listen to them.

Most ends of the server are kills, some are stops.

All chance in a round comes from its name. CRASH_SEED="4711-17" plays the round of this name alone.
"""

import asyncio
import os
import random
import secrets
import signal
import statistics
import time
from dataclasses import dataclass, field

import pytest

from tests.crash.client import Client
from tests.crash.doomed import DoomedServer
from tests.crash.launching import Launcher
from tests.crash.plan import AfterDelay, AroundPoint, Plan
from tests.crash.recovery_lag import pickup_lags_s
from tests.crash.stream_client import StreamFollower, stream_errors
from tests.support.scenario import Conversation, Plot, ask, play
from tests.support.scenario_checks import violations
from tests.support.waiting import wait_until

CHOSEN = os.environ.get("CRASH_SEED")
STORY_COUNT = 3
TOOL_MS_MAX = 40
#: The stories of a round have ended by then, or nearly.
KILL_MS_MAX = 900
KILL_WRITE_MAX = 60
#: Events that one reader process receives at most.
EVENT_COUNT_MAX = 12
PICKUP_S_MAX = 1.0
ROUNDS_A_LINE = 10


@dataclass
class Score:
    """What the rounds came to so far."""

    began_s: float = field(default_factory=time.monotonic)
    round_count: int = 0
    story_count: int = 0
    end_count: int = 0
    client_kill_count: int = 0
    lags_s: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        lags_s = self.lags_s or [0.0]
        return (
            f"{time.monotonic() - self.began_s:5.0f} s: {self.round_count} rounds, {self.story_count} stories, "
            f"{self.end_count} ends of the server, {self.client_kill_count} of listeners; {len(self.lags_s)} orphans "
            f"taken up {statistics.median(lags_s):+.3f} s (median) and {max(lags_s):+.3f} s (last) after it was ready"
        )


@pytest.mark.parametrize("round_count", [2, pytest.param(200, marks=pytest.mark.soak)])
async def test_whenever_the_server_is_killed_nothing_is_lost_and_nothing_done_twice(
    launcher: Launcher, round_count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """All promises hold in every round, and orphans go on within a second of the next server's being ready."""
    is_soak, score = round_count > ROUNDS_A_LINE, Score()
    async with DoomedServer(launcher) as server, server.kept_alive() as client:
        expected = await play(client, Plot(order_id="uninterrupted"), server.effects)
        for name in _names(round_count, is_soak):
            broken = await _round(server, client, name, expected, score)
            assert broken == [], f"replay with CRASH_SEED='{name}':\n" + "\n".join(broken)
            if is_soak and score.round_count % ROUNDS_A_LINE == 0:
                with capsys.disabled():
                    print(f"\n{score}", end="", flush=True)

    assert score.end_count >= score.round_count
    # A few rounds are no judge of time, and neither is the slowest of hundreds on a machine that does other things too.
    assert not is_soak or statistics.median(score.lags_s or [0.0]) <= PICKUP_S_MAX, str(score)


def _names(round_count: int, is_soak: bool) -> list[str]:
    if CHOSEN is not None:
        return [CHOSEN]
    series = str(secrets.randbelow(10**8)) if is_soak else "always"
    return [f"{series}-{number}" for number in range(1, round_count + 1)]


async def _round(server: DoomedServer, client: Client, name: str, expected: Conversation, score: Score) -> list[str]:
    """Play a few stories at once with at least one kill during or after them; the promises that were broken."""
    chance, death_count = random.Random(name), len(server.deaths)
    plots = [_plot(f"{name}-{number}", chance) for number in range(STORY_COUNT)]
    follower = StreamFollower(
        client, server.port, server.key, server.folder / f"{name}.received", chance, EVENT_COUNT_MAX
    )
    first, *later = _plans(chance)
    server.plans.extend(later)
    server.plan(first)

    async with asyncio.TaskGroup() as group:
        playing = [group.create_task(play(client, plot, server.effects)) for plot in plots]
        thread_id, run_id = await ask(client, plots[0])
        following = group.create_task(follower.follow(thread_id, run_id))
    await _calm(server, death_count)

    deaths = server.deaths[death_count:]
    again = StreamFollower(client, server.port, server.key, server.folder / f"{name}.replayed", chance)
    conversations = [task.result() for task in playing]
    broken = stream_errors(following.result(), await again.follow(thread_id, run_id), server_died=bool(deaths))
    for each in conversations:
        broken += violations(each, server.effects(), deaths, expected)
        score.lags_s += pickup_lags_s(each.journal, deaths, server.ready_at_s)
    score.round_count += 1
    score.story_count += len(conversations)
    score.end_count += len(deaths)
    score.client_kill_count += follower.kill_count
    return broken


async def _calm(server: DoomedServer, death_count: int) -> None:
    """Leave a server that runs and has no plan; one that outlived its round is killed behind it."""
    server.plans.clear()
    server.plan(None)
    if len(server.deaths) == death_count:
        server.send(signal.SIGKILL)
        await wait_until(lambda: len(server.deaths) > death_count, description="the end of the server")


def _plot(order_id: str, chance: random.Random) -> Plot:
    return Plot(
        order_id=order_id,
        delay_ms=chance.randint(0, TOOL_MS_MAX),
        approve_by=chance.choice(["answer", "resume"]),
        settle_by=chance.choice(["looking", "verify"]),
    )


def _plans(chance: random.Random) -> list[Plan]:
    """How the server dies, and perhaps the next one, which may still be taking up what the first one left."""
    count = chance.choice([1, 1, 2])
    return [_plan(chance, KILL_MS_MAX if number == 0 else KILL_MS_MAX // 4) for number in range(count)]


def _plan(chance: random.Random, delay_ms_max: int) -> Plan:
    if chance.random() < 0.7:
        return AfterDelay(chance.randint(0, delay_ms_max), chance.choice(["kill", "kill", "kill", "stop"]))
    return AroundPoint(chance.choice(["before", "after"]), "write", chance.randint(1, KILL_WRITE_MAX))
