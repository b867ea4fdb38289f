"""One compaction, delivered five times to two workers of which one is killed: one commit, each chunk answered once."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.crash.client import Client
from tests.support.cluster import Cluster, WorkerProcess
from tests.support.paced_model import PacedModel, serve_paced_model
from tests.support.paced_summaries import ORDER, answer, chunk_of, finish, talk
from tests.support.servers import PrivateRedis
from tests.support.waiting import wait_until
from threadmark.compaction import HOLD_S
from threadmark.workers.redis.redis_link import QUEUE, encode_job

DELIVERY_COUNT = 5
#: Less than a hold lasts: the death itself ends it.
OVER_S = HOLD_S - 5.0


@pytest.fixture
async def model() -> AsyncIterator[PacedModel]:
    """A model that answers when the test lets it."""
    async with serve_paced_model() as model:
        yield model


@pytest.fixture
async def cluster(model: PacedModel, postgres_url: str, fleet_redis: PrivateRedis) -> AsyncIterator[Cluster]:
    """An API process and two workers over databases of their own."""
    with Cluster(postgres_url, fleet_redis.url, THREADMARK_SERVE_WORKER="no", **model.environment) as cluster:
        cluster.work(2)
        cluster.serve()
        await asyncio.to_thread(cluster.await_all)
        yield cluster


def deliver(redis: PrivateRedis, task_id: str, round_name: str) -> None:
    """The task's job, as often as a queue that repeats itself brings it."""
    with redis.client() as client:
        for number in range(DELIVERY_COUNT):
            job: dict[str, Any] = {"t": None, "f": "run_task", "a": [task_id], "k": {}, "et": 1}
            client.set(f"arq:job:{round_name}-{number}", encode_job(job))
            client.zadd(QUEUE, {f"{round_name}-{number}": 1})


async def emptied(redis: PrivateRedis) -> None:
    """Return when every delivery was taken."""
    with redis.client() as client:
        await wait_until(lambda: client.zcard(QUEUE) == 0, description="the queue to be empty", timeout_s=30)


async def test_five_deliveries_two_workers_and_a_death_are_one_compaction(
    cluster: Cluster, model: PacedModel, fleet_redis: PrivateRedis
) -> None:
    """The survivor asks for no chunk whose answer was kept; the question that was open at the death is repeated."""
    async with Client(cluster.services[0].url, cluster.key) as client:
        thread_id = await talk(client)
        path = f"/threads/{thread_id}/compactions"
        ordered = await asyncio.gather(
            *(client.post(path, ORDER, idempotency_key="order") for _ in range(DELIVERY_COUNT))
        )
        assert len({each["compaction_id"] for each in ordered}) == 1
        compaction_id = ordered[0]["compaction_id"]
        (task,) = [each for each in (await client.get("/admin/tasks"))["items"] if each["kind"] == "compact_thread"]
        deliver(fleet_redis, task["task_id"], "before")

        asked: list[str] = []
        answered: list[str] = []
        first = await model.next_call()
        asked.append(chunk_of(first))
        await emptied(fleet_redis)
        await answer(first)
        answered.append(asked[-1])
        open_at_death = await model.next_call()
        asked.append(chunk_of(open_at_death))
        await asyncio.to_thread((await performer(client, cluster, task["task_id"])).kill)
        deliver(fleet_redis, task["task_id"], "after")

        done: dict[str, Any] = {}
        going = asyncio.create_task(finish(model, asked, answered, timeout_s=OVER_S))
        try:

            async def is_over() -> bool:
                if going.done():
                    going.result()
                done.update(await client.get(f"/compactions/{compaction_id}"))
                return done["status"] not in ("planned", "summarising")

            await wait_until(is_over, description="the compaction to be over", timeout_s=OVER_S)
        finally:
            going.cancel()
        await emptied(fleet_redis)

        assert (done["status"], done["strategy"], done["shown_ratio"]) == ("committed", "model", 1.0), done
        assert len(answered) >= 3
        assert Counter(answered) == Counter(set(answered))
        assert Counter(asked) == Counter(answered) + Counter([chunk_of(open_at_death)])
        assert [each["compaction_id"] for each in (await client.get(path))["items"]] == [compaction_id]
        assert [each["cause"] for each in (await client.get(f"/threads/{thread_id}/views"))["items"]] == ["compaction"]
        assert (await client.get(f"{path}/verify"))["holds"] is True
    assert sum(worker.is_running() for worker in cluster.workers) == 1


async def performer(client: Client, cluster: Cluster, task_id: str) -> WorkerProcess:
    """The worker that has the task."""
    worker_id = (await client.get(f"/admin/tasks/{task_id}"))["worker_id"]
    return next(worker for worker in cluster.workers if f"-{worker.pid}-" in worker_id)
