"""Jobs are hints: lost, doubled, late, forged or poisoned, they change nothing but the time until a run is found."""

import json
import pickle
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from tests.integration.cluster.hands import WORLD, Deployment
from tests.support.servers import PrivateRedis
from tests.support.waiting import wait_until
from threadmark.state import RunStatus
from threadmark.workers import worker_parts
from threadmark.workers.fleet.worker import Pace
from threadmark.workers.redis.redis_link import QUEUE, encode_job

RUN_ID = "01a22812-7193-7bcd-8304-da4549f015ef"


@pytest.fixture
async def deployment(tmp_path: Path, postgres_url: str, redis_url: str) -> AsyncIterator[Deployment]:
    """A deployment with Redis, and no worker yet."""
    async with Deployment.over(tmp_path, postgres_url, redis_url) as deployment:
        yield deployment


class Bomb:
    """What is called when its pickle is read."""

    def __reduce__(self) -> tuple[Any, ...]:
        return explode, ()


def explode() -> None:
    """Leave a trace."""
    WORLD.calls["bomb"] += 1


def put(client: Redis, job_id: str | bytes, body: bytes) -> None:
    """A job that is due, as anyone with access to Redis can write it."""
    name = job_id.encode() if isinstance(job_id, str) else job_id
    client.set(b"arq:job:" + name, body)
    client.zadd(QUEUE, {name: 1})


def job_for(run_id: object, **changes: Any) -> bytes:
    """The body of a job."""
    return encode_job({"t": None, "f": "take_turn", "a": [run_id], "k": {}, "et": 1, **changes})


async def drained(redis: PrivateRedis) -> None:
    """Return when no job is left."""
    with redis.client() as client:
        await wait_until(lambda: client.zcard(QUEUE) == 0, description="the queue to be empty")


async def test_a_ring_begins_a_turn_on_one_of_the_workers(deployment: Deployment) -> None:
    """Through Redis: the API side has no worker of its own."""
    async with deployment.worker(), deployment.worker():
        run = await deployment.say('call note {"label": "a"}')
        await deployment.becomes(run, RunStatus.SUCCESS)

    assert WORLD.calls == {"a": 1}
    assert await deployment.turn_count(run) == 1


async def test_a_job_comes_for_each_turn_and_leaves_nothing(
    deployment: Deployment, private_redis: PrivateRedis
) -> None:
    """No result is kept: the id of a job may be used again, and memory does not grow with runs."""
    async with deployment.worker():
        for number in range(5):
            await deployment.becomes(await deployment.say(f'call note {{"label": "{number}"}}'), RunStatus.SUCCESS)
        await drained(private_redis)

        def left() -> list[Any]:
            with private_redis.client() as client:
                return [key for key in client.keys("*") if not key.endswith("health-check")]

        await wait_until(lambda: left() == [], description="nothing left in Redis")


async def test_doubled_jobs_make_one_turn(deployment: Deployment, private_redis: PrivateRedis) -> None:
    """Fifty notifications for a run, before and while it runs: two workers receive them, one takes one turn (F19)."""
    run = await deployment.say('call note {"label": "a"}\ncall hold {"label": "b"}')
    with private_redis.client() as client:
        for attempt in range(2, 52):
            put(client, f"{run.run_id}:{attempt}", job_for(run.run_id))
    async with deployment.worker(), deployment.worker():
        await wait_until(lambda: WORLD.calls["b"] == 1, description="the second call")
        for attempt in range(1, 52):
            deployment.api.notifier.notify(run.run_id, attempt)
        await drained(private_redis)
        WORLD.released.set()
        await deployment.becomes(run, RunStatus.SUCCESS)

    assert WORLD.calls == {"a": 1, "b": 1}
    assert await deployment.turn_count(run) == 1


async def test_a_full_worker_leaves_the_rest_to_others(
    deployment: Deployment, private_redis: PrivateRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many notifications a worker receives beside its sweeps, it takes no more turns than it has room for."""
    monkeypatch.setattr(worker_parts, "Pace", partial(Pace, turn_count_max=3))
    async with deployment.worker() as first:
        runs = [await deployment.say(f'call hold {{"label": "{number}"}}') for number in range(10)]
        await wait_until(lambda: sum(WORLD.calls.values()) == 3, description="three calls")
        async with deployment.worker() as second:
            await wait_until(lambda: sum(WORLD.calls.values()) == 6, description="six calls")
            for run in runs:
                deployment.api.notifier.notify(run.run_id, 2)
            assert first.worker is not None
            assert second.worker is not None
            await drained(private_redis)
            assert (first.worker.turn_count, second.worker.turn_count) == (3, 3)
            WORLD.released.set()
            for run in runs:
                await deployment.becomes(run, RunStatus.SUCCESS)

    assert set(WORLD.calls.values()) == {1}


async def test_a_late_job_changes_nothing(deployment: Deployment, private_redis: PrivateRedis) -> None:
    """An hour after its run has ended: the journal stays as it was (F19)."""
    async with deployment.worker():
        run = await deployment.say('call note {"label": "a"}')
        await deployment.becomes(run, RunStatus.SUCCESS)
        before = await deployment.api.journal.read(run.thread)
        with private_redis.client() as client:
            put(client, f"{run.run_id}:1", job_for(run.run_id))
        await drained(private_redis)

    assert await deployment.api.journal.read(run.thread) == before
    assert (await deployment.seen(run)).attempts == 1


FORGED = [
    job_for(RUN_ID),
    job_for("'; DROP TABLE run; --"),
    job_for({"run_id": RUN_ID}),
    job_for(RUN_ID, k={"ctx": 1, "run_id": 2, "tenant_id": "other"}),
    job_for(RUN_ID, f="os.system", a=["true"]),
    job_for(RUN_ID, t=10**9),
    job_for(RUN_ID, et=2**80),
    pickle.dumps({"t": None, "f": "take_turn", "a": (Bomb(),), "k": {}, "et": 1}),
    pickle.dumps(Bomb()),
    b"\x80\x04.",
    b'{"f": "take_turn", "a": 1, "k": {}, "et": "now"}',
    b"[" * 10_000,
]


async def test_forged_jobs_do_no_harm(deployment: Deployment, private_redis: PrivateRedis) -> None:
    """Each is dropped by itself: nothing of it runs, no worker ends, and a valid notification among them works."""
    async with deployment.worker() as worker:
        with private_redis.client() as client:
            for number, body in enumerate(FORGED):
                put(client, f"forged-{number}", body)
        run = await deployment.say('call note {"label": "a"}')
        await drained(private_redis)
        await deployment.becomes(run, RunStatus.SUCCESS)

        assert [each.failure_count for each in worker.outages if each.part == "jobs"] == [0]
    assert WORLD.calls == {"a": 1}


async def test_a_job_for_a_strangers_run_is_a_ring_for_it(deployment: Deployment, private_redis: PrivateRedis) -> None:
    """Whose a run is stands in the database: a job can make no tenant's run another's, only begin it."""
    run = await deployment.say('call note {"label": "a"}', notify=False)
    with private_redis.client() as client:
        put(client, f"{run.run_id}:1", job_for(run.run_id, k={"tenant_id": "thief"}))
    async with deployment.worker():
        await deployment.becomes(run, RunStatus.SUCCESS)

    assert (await deployment.seen(run)).tenant_id == "tenant-1"
    assert await deployment.turn_count(run) == 1


def as_text(client: Redis) -> None:
    """The queue is no queue."""
    client.set(QUEUE, "not a queue")


def as_noise(client: Redis) -> None:
    """The queue is full of what is no job."""
    for number in range(300):
        put(client, b"\xff" + str(number).encode(), json.dumps(number).encode())


@pytest.mark.parametrize("poison", [as_text, as_noise])
async def test_a_poisoned_queue_is_emptied(
    deployment: Deployment, private_redis: PrivateRedis, poison: Callable[[Redis], None]
) -> None:
    """arq itself fails on these; the sweep moves runs meanwhile, and notifications work again afterwards."""
    with private_redis.client() as client:
        poison(client)
    async with deployment.worker() as worker:
        run = await deployment.say('call note {"label": "a"}')
        await deployment.becomes(run, RunStatus.SUCCESS)
        (jobs,) = [each for each in worker.outages if each.part == "jobs"]
        await wait_until(lambda: jobs.failure_count > 0 and not jobs.is_on, description="jobs to be taken again")
        other = await deployment.say('call note {"label": "b"}')
        await deployment.becomes(other, RunStatus.SUCCESS)

    assert WORLD.calls == {"a": 1, "b": 1}


async def test_a_ring_that_redis_refuses_is_found_by_the_sweep(
    deployment: Deployment, private_redis: PrivateRedis
) -> None:
    """arq refuses an id silently while a job of that id exists, for instance a forged one that nobody takes."""
    async with deployment.worker():
        run = await deployment.say('call note {"label": "a"}', notify=False)
        with private_redis.client() as client:
            client.set(f"arq:job:{run.run_id}:1", "taken")
        deployment.api.notifier.notify(run.run_id, 1)
        await deployment.becomes(run, RunStatus.SUCCESS)
