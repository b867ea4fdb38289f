"""Ends at random instants in a fleet: of workers, of the API, of PostgreSQL, and of what Redis knew.

In every fifth round PostgreSQL crashes too, in every seventh Redis is emptied. All chance in a round comes from its
name. CRASH_SEED="4711-17" plays the round of this name alone.
"""

import asyncio
import os
import random
import secrets
import signal
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tests.crash.client import Client
from tests.crash.fleet import LEASE_TTL_S, SWEEP_S, Fleet
from tests.crash.launching import Launcher
from tests.crash.readiness import watch_readiness
from tests.crash.recovery_lag import takeover_lags_s
from tests.crash.supervised_process import Mortal
from tests.support.scenario import Conversation, Plot, play
from tests.support.scenario_checks import violations
from tests.support.servers import PrivatePostgres, PrivateRedis
from threadmark.state.runs.session_locks import SETTLE_S

CHOSEN = os.environ.get("CRASH_SEED")
STORY_COUNT = 2
TOOL_MS_MAX = 300
#: The stories of a round have ended by then, or nearly.
KILL_MS_MAX = 1_200
POSTGRES_EVERY = 5
REDIS_EVERY = 7
#: The median: a fallen lock is noticed long before a lease ends.
TAKEOVER_S_MAX = 1.0
#: What a turn adds that begins on a machine on which other processes start and tests run (seconds).
MARGIN_S = 2.0
#: The 95th percentile: a lease of a worker whose lock told nothing, the sweep that finds its run, and the margin.
TAKEOVER_P95_S_MAX = LEASE_TTL_S + SWEEP_S + MARGIN_S
ROUNDS_A_LINE = 10


@dataclass
class Score:
    """What the rounds came to so far."""

    began_s: float = field(default_factory=time.monotonic)
    round_count: int = 0
    kill_count: int = 0
    postgres_count: int = 0
    redis_count: int = 0
    lags_s: list[float] = field(default_factory=list)
    postgres_began_s: float = 0.0

    @property
    def p95_s(self) -> float:
        """The 95th percentile of the takeovers; 0 without any."""
        lags_s = sorted(self.lags_s) or [0.0]
        return lags_s[int(0.95 * (len(lags_s) - 1))]

    def __str__(self) -> str:
        lags_s = sorted(self.lags_s) or [0.0]
        return (
            f"{time.monotonic() - self.began_s:5.0f} s: {self.round_count} rounds of {STORY_COUNT} stories, "
            f"{self.kill_count} kills, {self.postgres_count} crashes of PostgreSQL, Redis emptied {self.redis_count} "
            f"times; {len(self.lags_s)} runs taken over from the dead: {statistics.median(lags_s):.3f} s (median), "
            f"{self.p95_s:.3f} s (p95, at most {TAKEOVER_P95_S_MAX:g} s), {lags_s[-1]:.3f} s (last)"
        )


@pytest.mark.parametrize(
    ("round_count", "worker_count", "stores_fall"),
    [
        pytest.param(7, 2, True, id="short"),
        pytest.param(500, 2, True, id="500-rounds", marks=pytest.mark.soak),
        *(pytest.param(50, count, False, id=f"{count}-processes", marks=pytest.mark.soak) for count in (2, 4, 8, 16)),
    ],
)
async def test_after_any_kill_nothing_is_lost_and_nothing_done_twice(
    launcher: Launcher,
    start_postgres: Callable[..., PrivatePostgres],
    private_redis: PrivateRedis,
    round_count: int,
    worker_count: int,
    stores_fall: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All runs complete, no acknowledged step runs again, one effects line per key, the journals verify.

    The soak bounds what a death costs: the time from it to the turn that another worker begins.
    """
    is_soak, score = round_count > ROUNDS_A_LINE, Score()
    postgres = start_postgres(fsync=is_soak)
    score.postgres_began_s = time.monotonic()
    with postgres.fresh_database() as url:
        fleet = Fleet(launcher, postgres, private_redis, database_url=url, worker_count=worker_count)
        async with fleet.alive() as client:
            expected = await play(client, Plot(order_id="uninterrupted"), fleet.effects)
            async with watch_readiness(fleet) as watch:
                for name in _names(round_count, is_soak):
                    broken = await _round(fleet, client, name, expected, score, stores_fall=stores_fall)
                    broken += watch.untrue
                    assert broken == [], f"replay with CRASH_SEED='{name}':\n" + "\n".join(broken)
                    if is_soak and score.round_count % ROUNDS_A_LINE == 0:
                        with capsys.disabled():
                            print(f"\n{score}; {watch}", end="", flush=True)
                await watch.all_ready(fleet.urls)
            assert watch.untrue == []

    assert score.kill_count >= score.round_count
    # A few rounds are no judge of time, and neither is the slowest of hundreds on a machine that does other things too.
    assert not is_soak or statistics.median(score.lags_s or [0.0]) <= TAKEOVER_S_MAX, str(score)
    assert not is_soak or score.p95_s <= TAKEOVER_P95_S_MAX, str(score)
    assert not is_soak or stores_fall or CHOSEN is not None or score.lags_s, "no takeover was measured"


def _names(round_count: int, is_soak: bool) -> list[str]:
    if CHOSEN is not None:
        return [CHOSEN]
    series = str(secrets.randbelow(10**8)) if is_soak else "always"
    return [f"{series}-{number}" for number in range(1, round_count + 1)]


async def _round(
    fleet: Fleet, client: Client, name: str, expected: Conversation, score: Score, *, stores_fall: bool
) -> list[str]:
    """Tell a few stories at once while the fleet is killed into; what does not hold."""
    chance, death_count, began_s = random.Random(name), len(fleet.deaths), time.monotonic()
    number = int(name.rpartition("-")[2])
    plots = [_plot(f"{name}-{each}", chance) for each in range(STORY_COUNT)]
    async with asyncio.TaskGroup() as group:
        playing = [group.create_task(play(client, plot, fleet.effects)) for plot in plots]
        group.create_task(_kill_some(fleet, chance, score))
        if stores_fall and number % POSTGRES_EVERY == 0:
            group.create_task(_break_database(fleet, chance.randint(0, KILL_MS_MAX), score))
        if stores_fall and number % REDIS_EVERY == 0:
            group.create_task(_empty_redis(fleet, chance.randint(0, KILL_MS_MAX), score))

    conversations = [task.result() for task in playing]
    deaths = fleet.deaths[death_count:]
    score.round_count += 1
    broken = []
    for each in conversations:
        broken += violations(each, fleet.effects(), deaths, expected)
        # Just after the database started, only an expired lease shows a dead worker: that would measure the lease.
        if not stores_fall and began_s - score.postgres_began_s > SETTLE_S:
            score.lags_s += takeover_lags_s(each.journal, deaths)
    return broken


async def _kill_some(fleet: Fleet, chance: random.Random, score: Score) -> None:
    """One or two processes, one after the other; the API is one of them now and then."""
    for _ in range(chance.choice([1, 1, 2])):
        await asyncio.sleep(chance.randint(0, KILL_MS_MAX) / 1000)
        victim = _victim(fleet, chance)
        victim.send(signal.SIGKILL)
        score.kill_count += 1


def _victim(fleet: Fleet, chance: random.Random) -> Mortal:
    return chance.choice(fleet.apis if chance.random() < 0.2 else fleet.workers)


async def _break_database(fleet: Fleet, delay_ms: int, score: Score) -> None:
    await asyncio.sleep(delay_ms / 1000)
    fleet.break_database()
    score.postgres_count += 1


async def _empty_redis(fleet: Fleet, delay_ms: int, score: Score) -> None:
    await asyncio.sleep(delay_ms / 1000)
    with fleet.unrest.disturbed():
        fleet.redis.flush()
    score.redis_count += 1


def _plot(order_id: str, chance: random.Random) -> Plot:
    return Plot(
        order_id=order_id,
        delay_ms=chance.randint(0, TOOL_MS_MAX),
        approve_by=chance.choice(["answer", "resume"]),
        settle_by=chance.choice(["looking", "verify"]),
    )
