"""A run is cancelled through one process while another is in the middle of its step, notice or no notice."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.cluster.hands import WORLD, Deployment
from tests.support.agent_server import call, said
from tests.support.cluster import Cluster
from tests.support.servers import PrivateRedis
from tests.support.waiting import wait_until
from threadmark.state import RunStatus

HOLD = 'call note {"label": "a"}\ncall hold {"label": "b"}'
LONG_MS = 60_000


@pytest.fixture(params=["with Redis", "without Redis"])
async def deployment(request: pytest.FixtureRequest, tmp_path: Path, postgres_url: str) -> AsyncIterator[Deployment]:
    """A deployment with and one without Redis."""
    redis_url = request.getfixturevalue("redis_url") if request.param == "with Redis" else None
    async with Deployment.over(tmp_path, postgres_url, redis_url) as deployment:
        yield deployment


async def test_a_step_under_way_is_cut_short(deployment: Deployment) -> None:
    """The gate never opens: only a worker that learns of the cancellation ends the run."""
    async with deployment.worker(), deployment.worker():
        run = await deployment.say(HOLD)
        await wait_until(lambda: WORLD.calls["b"] == 1, description="the second call")
        await deployment.cancel(run)
        await deployment.becomes(run, RunStatus.INTERRUPTED)

    assert WORLD.calls == {"a": 1, "b": 1}


async def test_a_notice_that_is_lost_is_found_by_the_sweep(
    tmp_path: Path, postgres_url: str, private_redis: PrivateRedis
) -> None:
    """Redis dies after the run has begun: no notification reaches the worker, and its own check finds the cancel."""
    async with Deployment.over(tmp_path, postgres_url, private_redis.url) as deployment, deployment.worker():
        run = await deployment.say(HOLD)
        await wait_until(lambda: WORLD.calls["b"] == 1, description="the second call")
        private_redis.kill()
        await deployment.cancel(run)
        await deployment.becomes(run, RunStatus.INTERRUPTED)


async def test_a_cancellation_over_http_reaches_the_worker(fleet: Cluster, client: object) -> None:
    """Real processes: the tool would take a minute, and the thread is free long before."""
    async with fleet.services[0].sdk(fleet.key) as sdk:
        thread = (await sdk.threads.create())["thread_id"]
        script = call("lookup_order", order_id="cancelled", delay_ms=LONG_MS)
        run = await sdk.runs.create(thread, "refund", input=said(script))
        await wait_until(
            lambda: [line for line in fleet.effects() if line["arguments"]["order_id"] == "cancelled"],
            description="the call",
        )
        await sdk.runs.cancel(thread, run["run_id"], wait=True)

        assert (await sdk.runs.get(thread, run["run_id"]))["status"] == "interrupted"
        assert (await sdk.threads.get(thread))["status"] == "idle"
