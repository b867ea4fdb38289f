"""Workers whose clocks differ by minutes: leases and due times are the database's, so nothing changes (C16, F10)."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.client import Client
from tests.crash.doomed import Death
from tests.support.cluster import Cluster
from tests.support.daemon import unavailable
from tests.support.scenario import Conversation, Plot, play
from tests.support.scenario_checks import violations
from tests.support.servers import PrivatePostgres, PrivateRedis
from tests.support.waiting import wait_until

SKEWS = ("+120", "-120")
STORY_COUNT = 4
#: Shorter than the grace period of a stopping worker.
DELAY_MS = 300


def faketime() -> Path:
    """The library that gives a process another clock. Skips the test where there is none, and fails it in CI."""
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    return found[0] if found else unavailable("libfaketime is not installed (Debian: apt-get install faketime)")


@pytest.fixture
def skewed(postgres_of_the_fleet: PrivatePostgres, redis_of_the_fleet: PrivateRedis) -> Iterator[Cluster]:
    """An API with the true clock, one worker two minutes ahead and one two minutes behind."""
    library = faketime()
    with (
        postgres_of_the_fleet.fresh_database() as url,
        Cluster(url, redis_of_the_fleet.url, THREADMARK_SWEEP_S="0.5") as cluster,
    ):
        for skew in SKEWS:
            clock = {"LD_PRELOAD": str(library), "FAKETIME": f"{skew}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
            cluster.work(1, **clock)
        cluster.serve()
        cluster.await_all()
        yield cluster


async def test_clocks_that_differ_change_nothing(skewed: Cluster, fleet_redis: PrivateRedis) -> None:
    """No lease is stolen and none outlives its worker: stories go on while each worker ends in turn."""
    fleet_redis.flush()
    async with Client(skewed.services[0].url, skewed.key) as client:
        expected = await play(client, Plot(order_id="uninterrupted"), skewed.effects)
        for number, worker in enumerate(skewed.workers):
            plots = [Plot(order_id=f"skew-{number}-{each}", delay_ms=DELAY_MS) for each in range(STORY_COUNT)]
            playing = [asyncio.create_task(play(client, plot, skewed.effects)) for plot in plots]
            await _all_begun(skewed, plots)
            await asyncio.to_thread(worker.kill)
            conversations = await asyncio.gather(*playing)

            assert [
                each
                for conversation in conversations
                for each in violations(conversation, skewed.effects(), _no_deaths(), expected)
            ] == []
            assert {each.pid for each in skewed.workers if each.is_running()} <= _worker_pids(conversations)
            worker.start()


async def _all_begun(cluster: Cluster, plots: list[Plot]) -> None:
    await wait_until(
        lambda: len(_called(cluster, plots)) == len(plots), description="every story to have begun", timeout_s=60
    )


def _called(cluster: Cluster, plots: list[Plot]) -> set[str]:
    """The orders of these plots that have reached the outside world."""
    orders = {plot.order_id for plot in plots}
    return {str(line["arguments"]["order_id"]) for line in cluster.effects()} & orders


def _no_deaths() -> list[Death]:
    """Instants of a journal that was written by two clocks say nothing about what was on disk when a worker died."""
    return []


def _worker_pids(conversations: list[Conversation]) -> set[int]:
    """The processes that moved these stories."""
    turns = [
        entry for conversation in conversations for entry in conversation.journal if entry["kind"] == "turn_started"
    ]
    return {int(turn["worker_id"].split("-")[-2]) for turn in turns}


#: Ahead by more than any lease, behind it, and back.
JUMPS = ("+900s", "-900s", "+0s")


@pytest.mark.parametrize(
    "jumps", [pytest.param(JUMPS[:1], id="once"), pytest.param(JUMPS, id="to-and-fro", marks=pytest.mark.soak)]
)
async def test_clocks_that_jump_change_nothing(
    postgres_of_the_fleet: PrivatePostgres, redis_of_the_fleet: PrivateRedis, tmp_path: Path, jumps: tuple[str, ...]
) -> None:
    """The clock of every worker jumps in the middle of stories: no run is lost or done twice, and none waits for it."""
    clock = tmp_path / "clock"
    clock.write_text("+0s")
    fake = {
        "LD_PRELOAD": str(faketime()),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        # Looked at once a second: read at every call, the file costs more than the stories.
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    redis_of_the_fleet.flush()
    with (
        postgres_of_the_fleet.fresh_database() as url,
        Cluster(url, redis_of_the_fleet.url, THREADMARK_SWEEP_S="0.5") as cluster,
    ):
        cluster.work(2, **fake)
        cluster.serve()
        cluster.await_all()
        async with Client(cluster.services[0].url, cluster.key) as client:
            expected = await play(client, Plot(order_id="uninterrupted"), cluster.effects)
            for number, jump in enumerate(jumps):
                plots = [Plot(order_id=f"jump-{number}-{each}", delay_ms=DELAY_MS) for each in range(STORY_COUNT)]
                playing = [asyncio.create_task(play(client, plot, cluster.effects)) for plot in plots]
                await _all_begun(cluster, plots)
                clock.write_text(jump)
                conversations = await asyncio.gather(*playing)

                assert [
                    each
                    for conversation in conversations
                    for each in violations(conversation, cluster.effects(), _no_deaths(), expected)
                ] == []
            assert client.complaints == []
