"""PostgreSQL stops for a while under a fleet: every loop goes on afterwards, and a stop meanwhile is a clean one."""

import asyncio
import json
import signal
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.crash.client import Client
from tests.support.cluster import Cluster, WorkerProcess
from tests.support.daemon import free_port
from tests.support.servers import PrivatePostgres
from tests.support.waiting import wait_until

OUTAGE_S = 3.0
WAIT_S = 60.0


@pytest.fixture(scope="module")
def postgres() -> Iterator[PrivatePostgres]:
    """A server that these tests stop."""
    with PrivatePostgres() as server:
        yield server


@pytest.fixture
def cluster(postgres: PrivatePostgres) -> Iterator[Cluster]:
    """One server and one worker with a health port, without Redis: only the worker's own sweep finds a run."""
    with (
        postgres.fresh_database() as url,
        Cluster(url, None, THREADMARK_SERVE_WORKER="no") as cluster,
    ):
        cluster.work(1, THREADMARK_HEALTH_PORT=str(free_port()))
        cluster.serve()
        cluster.await_all()
        yield cluster


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[Client]:
    """A client of the server."""
    async with Client(cluster.services[0].url, cluster.key) as client:
        yield client


async def health(worker: WorkerProcess, path: str = "/ready") -> tuple[int, Any]:
    """What the worker answers on its health port."""
    url = f"http://127.0.0.1:{worker.environment['THREADMARK_HEALTH_PORT']}{path}"

    def ask() -> tuple[int, Any]:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    return await asyncio.to_thread(ask)


async def is_ready(worker: WorkerProcess) -> bool:
    """Whether the worker says that it is ready."""
    return (await health(worker))[0] == 200


async def loops_of(client: Client) -> dict[str, Any]:
    """What the only worker says of its loops."""
    (worker,) = (await client.get("/admin/workers"))["workers"]
    return {each["name"]: each for each in worker["loops"]}


async def test_no_loop_ends_with_an_outage(cluster: Cluster, client: Client, postgres: PrivatePostgres) -> None:
    """After an immediate stop of three seconds a run that is due later is found, with no doorbell, and all is ready."""
    (worker,) = cluster.workers
    await wait_until(lambda: is_ready(worker), description="the worker to be ready", timeout_s=WAIT_S)

    await asyncio.to_thread(postgres.stop, "immediate")
    await asyncio.sleep(OUTAGE_S)  # the length of the outage is what is tried
    await asyncio.to_thread(postgres.start)
    thread = await client.post("/threads", {}, idempotency_key="thread")
    path = f"/threads/{thread['thread_id']}/runs"
    said = {"messages": [{"role": "user", "content": "hello"}]}
    body = {"assistant_id": "chat", "input": said, "after_seconds": 2}
    run = await client.post(path, body, idempotency_key="run")

    async def is_done() -> bool:
        return bool((await client.get(f"{path}/{run['run_id']}"))["status"] == "success")

    await wait_until(is_done, description="the delayed run", timeout_s=WAIT_S)
    await wait_until(lambda: is_ready(worker), description="the worker to be ready again", timeout_s=WAIT_S)

    async def says_that_it_failed() -> bool:
        loops = await loops_of(client)
        return bool(loops["heartbeat"]["error_count"] > 0 and not loops["sweep"]["is_stale"])

    await wait_until(says_that_it_failed, description="the errors to be logged", timeout_s=WAIT_S)
    assert {"sweep", "task sweep", "heartbeat", "memory upkeep", "memory recall log"} <= set(await loops_of(client))


async def test_a_worker_that_cannot_sweep_says_so(cluster: Cluster, postgres: PrivatePostgres) -> None:
    """Its `/ready` is 503 with the reason once several intervals have passed, while `/ok` says that it listens."""
    (worker,) = cluster.workers
    await asyncio.to_thread(postgres.stop, "immediate")

    async def is_late() -> Any:
        status, body = await health(worker)
        return status == 503 and [each for each in body["reasons"] if each.startswith("sweep")]

    try:
        await wait_until(is_late, description="the worker to say that its sweep is late", timeout_s=WAIT_S)
        assert (await health(worker, "/ok"))[0] == 200
    finally:
        await asyncio.to_thread(postgres.start)
    await wait_until(lambda: is_ready(worker), description="the worker to be ready again", timeout_s=WAIT_S)


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
async def test_a_stop_during_an_outage_is_a_clean_one(
    cluster: Cluster, postgres: PrivatePostgres, by: signal.Signals
) -> None:
    """Exit code 0 and no traceback of the stop; the lease cannot be given back, and the log says so."""
    (worker,) = cluster.workers
    await asyncio.to_thread(postgres.stop, "immediate")
    await wait_until(lambda: "sweep failed" in worker.log, description="the worker to notice", timeout_s=WAIT_S)
    mark = len(worker.log)

    try:
        code = await asyncio.to_thread(worker.end, by)
    finally:
        await asyncio.to_thread(postgres.start)

    assert code == 0
    assert "Traceback" not in worker.log[mark:], worker.log[mark:]
    assert "the lease could not be released" in worker.log[mark:]
