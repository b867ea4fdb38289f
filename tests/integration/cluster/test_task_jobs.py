"""Jobs for background tasks: they carry an id, wake one worker, and prove nothing."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from tests.integration.cluster.hands import WORLD, Deployment
from tests.support.servers import PrivateRedis
from tests.support.waiting import wait_until
from threadmark.state.tasks.tasks import NewTask, Task, TaskStatus, add_task, get_task
from threadmark.workers.redis.redis_link import QUEUE, encode_job
from threadmark.workers.tasks.task_context import TaskContext
from threadmark.workers.wiring import open_resources

#: No sweep comes while the test lasts.
SLOW = {"THREADMARK_SWEEP_S": "600"}


@pytest.fixture
async def deployment(tmp_path: Path, postgres_url: str, redis_url: str) -> AsyncIterator[Deployment]:
    """A deployment with Redis, and no worker yet."""
    async with Deployment.over(tmp_path, postgres_url, redis_url, **SLOW) as deployment:
        yield deployment


async def note(task: Task, _: TaskContext) -> str:
    """Note that it was done."""
    WORLD.calls[task.key] += 1
    return task.key


async def added(deployment: Deployment, key: str) -> Task:
    """A task whose notification was lost."""
    new = NewTask(tenant_id="tenant-1", kind="note", key=key, payload={})
    return await deployment.api.database.write(lambda connection: add_task(connection, new, deployment.api.now_us()))


async def test_a_job_wakes_a_worker_for_its_task(deployment: Deployment, private_redis: PrivateRedis) -> None:
    """The API side rings after its commit; rings that are doubled, forged or about nothing change nothing."""
    task_runner = {"note": note}
    async with open_resources(deployment.settings, with_worker=True, with_readers=False, task_runner=task_runner):
        task = await added(deployment, "one")
        bodies = [encode_job({"t": None, "f": "run_task", "a": [each], "k": {}, "et": 1}) for each in (None, "x", 7)]
        with private_redis.client() as client:
            for number, body in enumerate(bodies):
                client.set(f"arq:job:forged-{number}", body)
                client.zadd(QUEUE, {f"forged-{number}": 1})
        for attempt in (1, 1, 2):
            deployment.api.notifier.notify_task(task.task_id, attempt)

        async def is_done() -> bool:
            found = await deployment.api.database.read(partial(get_task, task_id=task.task_id))
            return found.status is TaskStatus.DONE

        await wait_until(is_done, description="the task to be done", timeout_s=30)
        with private_redis.client() as client:
            await wait_until(lambda: client.zcard(QUEUE) == 0, description="the queue to be empty")

    assert WORLD.calls == {"one": 1}
