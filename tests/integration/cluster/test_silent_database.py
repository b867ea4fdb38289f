"""PostgreSQL falls silent under a real API process that has the default limits: what a deployment would meet."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from sqlalchemy import make_url

from tests.crash.client import Client
from tests.support.cluster import Cluster
from tests.support.scenario import Conversation, Plot, play
from tests.support.scenario_checks import violations
from tests.support.servers import PrivatePostgres
from tests.support.silent_proxy import SilentProxy
from tests.support.waiting import wait_until

#: What docs/operations.md promises of every request.
PROMISED_S = 20.0
#: A client that waits longer waits for what was promised to end.
CLIENT_S = 60.0
#: More than there are readers, so that some wait for their turn first.
COUNT_OF_EACH = 3
RECOVERY_S = 60.0
SLOW_MS = 1_500
#: The lease ends after 10 s without renewal; the rest is for a busy machine.
TAKEN_S_MAX = 90.0
#: Of one story.
COUNT_OF_EFFECTS = 5
ITEM = {"namespace": ["users", "7"], "text": "likes tea"}


@pytest.fixture
def proxy(postgres_of_the_fleet: PrivatePostgres) -> Iterator[SilentProxy]:
    """Between the process and the server."""
    with SilentProxy(postgres_of_the_fleet.port) as proxy:
        yield proxy


@pytest.fixture
async def http(postgres_of_the_fleet: PrivatePostgres, proxy: SilentProxy) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an API process that reaches both its databases through the proxy."""
    with ExitStack() as stack:
        state, memory = (
            make_url(stack.enter_context(postgres_of_the_fleet.fresh_database()))
            .set(port=proxy.port)
            .render_as_string(hide_password=False)
            for _ in range(2)
        )
        settings = {"THREADMARK_SERVE_WORKER": "no", "THREADMARK_MEMORY_DATABASE_URL": memory}
        cluster = stack.enter_context(Cluster(state, None, **settings))
        async with cluster.serve().http(cluster.key) as http:
            http.timeout = httpx.Timeout(CLIENT_S)
            yield http


async def timed(http: httpx.AsyncClient, method: str, path: str, body: Any = None) -> tuple[httpx.Response, float]:
    """The answer, and after how many seconds it came."""
    began_s = time.monotonic()
    answer = await http.request(method, path, json=body)
    return answer, time.monotonic() - began_s


async def test_with_the_default_limits_every_request_ends_as_promised(
    http: httpx.AsyncClient, proxy: SilentProxy
) -> None:
    """Reads and writes, of the journal and of memory, are 503 with Retry-After within 20 s; then all is as before."""
    thread = (await http.post("/threads", json={})).raise_for_status().json()["thread_id"]
    run = {"assistant_id": "chat", "input": {"messages": [{"role": "user", "content": "hello"}]}}
    requests: list[tuple[str, str, Any]] = [
        ("GET", f"/threads/{thread}", None),
        ("GET", f"/threads/{thread}/state", None),
        ("GET", f"/threads/{thread}/history", None),
        ("POST", f"/threads/{thread}/runs", run | {"multitask_strategy": "enqueue"}),
        ("POST", "/threads", {}),
        ("POST", "/memories", {"items": [ITEM]}),
        ("POST", "/memories/recall", {"query": "tea", "namespace": ["users"]}),
        ("GET", "/memories?namespace=users", None),
    ]
    for method, path, body in requests:
        (await http.request(method, path, json=body)).raise_for_status()

    proxy.fall_silent()
    answers = await asyncio.gather(*(timed(http, *each) for each in requests for _ in range(COUNT_OF_EACH)))
    proxy.speak()

    async def is_served() -> bool:
        return all([(await http.request(*each[:2], json=each[2])).is_success for each in requests])

    await wait_until(is_served, description="every request to be served again", timeout_s=RECOVERY_S, poll_s=0.5)
    unlike = [
        f"{answer.request.method} {answer.request.url.path}: {answer.status_code} {answer.text} after {took_s:.1f} s"
        for answer, took_s in answers
        if answer.status_code != 503 or not answer.headers.get("retry-after", "").isdigit() or took_s > PROMISED_S
    ]
    assert unlike == []


async def test_a_worker_whose_database_falls_silent_is_replaced_and_serves_again(
    postgres_of_the_fleet: PrivatePostgres, proxy: SilentProxy
) -> None:
    """With the default lease another process takes its run, and pays no second time; when its connection is back, the
    first one lets go of the run and serves others."""
    plot = Plot(order_id="silent", slow="refund", delay_ms=SLOW_MS)
    with postgres_of_the_fleet.fresh_database() as url, Cluster(url, None, THREADMARK_SERVE_WORKER="no") as cluster:
        through = make_url(url).set(port=proxy.port).render_as_string(hide_password=False)
        (hanging,) = cluster.work(1, THREADMARK_STATE_DATABASE_URL=through)
        service = cluster.serve()
        cluster.await_all()
        async with Client(service.url, cluster.key) as client:
            expected = await play(client, Plot(order_id="uninterrupted"), cluster.effects)
            story = asyncio.create_task(play(client, plot, cluster.effects, within_s=TAKEN_S_MAX))
            await wait_until(lambda: _paid_count(cluster, plot) == 1, description="the refund", timeout_s=TAKEN_S_MAX)
            proxy.fall_silent()
            (other,) = cluster.work(1)
            conversation = await story
            effects = cluster.effects()

            proxy.speak()
            await wait_until(
                lambda: "was declared dead" in hanging.log,
                description="the first worker to let go",
                timeout_s=RECOVERY_S,
            )
            pid = other.pid
            await asyncio.to_thread(other.stop)
            afterwards = await play(client, Plot(order_id="afterwards"), cluster.effects, within_s=TAKEN_S_MAX)

        assert violations(conversation, effects, [], expected) == []
        assert conversation.resolutions == ["happened"]
        assert [line for line in cluster.effects() if line in effects] == effects
        assert len(cluster.effects()) == len(effects) + COUNT_OF_EFFECTS
        assert violations(afterwards, cluster.effects(), [], expected) == []
        assert hanging.is_running()
        assert [_pids(each) for each in (expected, afterwards)] == [{hanging.pid}] * 2
        assert _pids(conversation) == {hanging.pid, pid}


def _paid_count(cluster: Cluster, plot: Plot) -> int:
    return sum(
        line["tool"] == "refund" and line["arguments"]["order_id"] == plot.order_id for line in cluster.effects()
    )


def _pids(conversation: Conversation) -> set[int]:
    """Of the processes that moved the conversation."""
    turns = [each for each in conversation.journal if each["kind"] == "turn_started"]
    return {int(each["worker_id"].split("-")[-2]) for each in turns}
