"""Redis loses its data, restarts without any, and is full: the database says what there is to do."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.integration.cluster.hands import WORLD, Deployment
from tests.support.servers import PrivateRedis
from tests.support.waiting import wait_until
from threadmark.state import RunStatus
from threadmark.workers import worker_parts
from threadmark.workers.fleet.worker import Pace

FULL, BOUNDLESS = "1mb", "0"
QUEUED_COUNT, RUNNING_COUNT, SLEEPING_COUNT = 20, 5, 5
DELAY_S = 1.0


@pytest.fixture
async def deployment(
    tmp_path: Path, postgres_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Deployment]:
    """A deployment whose workers have room for five turns each."""
    monkeypatch.setattr(worker_parts, "Pace", partial(Pace, turn_count_max=RUNNING_COUNT))
    async with Deployment.over(tmp_path, postgres_url, redis_url) as deployment:
        yield deployment


@pytest.fixture
def bounded_redis(private_redis: PrivateRedis) -> Iterator[PrivateRedis]:
    """Redis, whose memory the test may bound."""
    yield private_redis
    private_redis.start()
    bound(private_redis, BOUNDLESS)


def bound(redis: PrivateRedis, size: str) -> None:
    """Let Redis have so much memory."""
    with redis.client() as client:
        client.config_set("maxmemory", size)


async def test_what_redis_forgets_is_done_all_the_same(deployment: Deployment, bounded_redis: PrivateRedis) -> None:
    """Twenty runs queued, five running, five asleep until later: each is done once (F07, F18, F20)."""
    async with deployment.worker():
        sleeping = [
            await deployment.say(f'call later {{"label": "asleep-{number}", "delay_s": {DELAY_S}}}')
            for number in range(SLEEPING_COUNT)
        ]
        await wait_until(lambda: sum(WORLD.calls.values()) == SLEEPING_COUNT, description="the first attempts")
        running = [
            await deployment.say(f'call hold {{"label": "running-{number}"}}') for number in range(RUNNING_COUNT)
        ]
        queued = [await deployment.say(f'call note {{"label": "queued-{number}"}}') for number in range(QUEUED_COUNT)]
        await asyncio.to_thread(bounded_redis.flush)
        await asyncio.to_thread(bounded_redis.restart)
        bound(bounded_redis, FULL)
        late = [await deployment.say(f'call note {{"label": "late-{number}"}}') for number in range(QUEUED_COUNT)]
        WORLD.released.set()
        for run in [*sleeping, *running, *queued, *late]:
            await deployment.becomes(run, RunStatus.SUCCESS)

        assert deployment.api.outages[0].failure_count > 0, "Redis was not full"
    counts = {label: WORLD.calls[label] for label in WORLD.calls if not label.startswith("asleep")}
    assert set(counts.values()) == {1}
    assert len(counts) == RUNNING_COUNT + 2 * QUEUED_COUNT
    assert {WORLD.calls[f"asleep-{number}"] for number in range(SLEEPING_COUNT)} == {2}


async def test_an_outage_is_over_when_redis_is_back(deployment: Deployment, private_redis: PrivateRedis) -> None:
    """Rings, notices and jobs go through it again, without a restart of anything."""
    async with deployment.worker() as worker:
        private_redis.kill()
        await deployment.becomes(await deployment.say('call note {"label": "a"}'), RunStatus.SUCCESS)
        outages = [deployment.api.outages[0], *worker.outages[2:]]
        await wait_until(lambda: all(each.is_on for each in outages), description="everybody to notice")
        private_redis.start()
        await wait_until(lambda: not any(each.is_on for each in outages[1:]), description="the worker to be back")
        await deployment.becomes(await deployment.say('call note {"label": "b"}'), RunStatus.SUCCESS)
        await wait_until(lambda: not outages[0].is_on, description="the doorbell to be back")

    assert WORLD.calls == {"a": 1, "b": 1}
