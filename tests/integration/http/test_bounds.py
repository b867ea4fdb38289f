"""Bounds per tenant: 429 with the name of the bound, and a neighbour who is not at its own is served."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.api import Api, make_key, open_api
from tests.support.compacting import POLICY, long_thread
from tests.support.live_server import Live, serve_live
from tests.support.waiting import wait_until
from threadmark.app.access import Scope
from threadmark.app.runs import compaction_request
from threadmark.state import expire, register

LEASE_S, LONG_S = 600.0, 30.0
ENVIRONMENT = {
    "THREADMARK_COMPACTIONS_PER_TENANT_MAX": "2",
    "THREADMARK_COMPACTIONS_PER_PROCESS_MAX": "3",
}


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    """An API with little room."""
    async with open_api(tmp_path, environment=ENVIRONMENT) as api:
        yield api


def refused(answer: Any, bound: str) -> bool:
    """Whether the answer is the refusal of this bound, and says when to come again."""
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["bound"]) == (429, "bound_reached", bound), answer.text
    return int(answer.headers["retry-after"]) >= 1


async def test_compactions_that_are_waited_for_have_a_bound(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a tenant and for the process; dry runs count, a repeated request does not, and who leaves makes room."""
    keys = {name: await api.key(Scope.ADMIN, tenant_id=name) for name in ("a", "b", "c")}
    threads = {name: await long_thread(api, key) for name, key in keys.items()}
    wait, dry = {"policy": POLICY, "wait": True}, {"policy": POLICY, "dry_run": True}

    async def order(name: str, body: Any, key: str | None = None) -> Any:
        headers = {} if key is None else {"idempotency-key": key}
        return await api.call("POST", f"/threads/{threads[name]}/compactions", keys[name], json=body, headers=headers)

    async def has_ordered(name: str, count: int) -> bool:
        listed = await api.call("GET", f"/threads/{threads[name]}/compactions", keys[name])
        return len(listed.json()["items"]) == count

    assert (await order("a", dry, "again")).status_code == 200
    # While a worker lives elsewhere, what is waited for is left to it: it stays open for as long as the test wants.
    monkeypatch.setattr(compaction_request, "POLL_S", 0.01)
    await api.resources.database.write(lambda connection: register(connection, "elsewhere", LEASE_S, '{"chat": "1"}'))
    waiting = [asyncio.create_task(order("a", wait)) for _ in range(2)]
    await wait_until(partial(has_ordered, "a", 2), description="two orders")
    assert refused(await order("a", wait), "compactions_per_tenant")
    assert refused(await order("a", dry), "compactions_per_tenant")
    assert (await order("a", dry, "again")).status_code == 200
    assert (await order("a", {"policy": POLICY})).status_code == 202
    assert (await order("b", dry)).status_code == 200
    waiting.append(asyncio.create_task(order("b", wait)))
    await wait_until(partial(has_ordered, "b", 1), description="an order")
    assert refused(await order("c", dry), "compactions_per_process")
    waiting[0].cancel()
    await asyncio.wait(waiting[:1])
    assert (await order("c", dry)).status_code == 200
    await api.resources.database.write(lambda connection: expire(connection, ["elsewhere"]))
    async with asyncio.timeout(LONG_S):
        assert [each.status_code for each in await asyncio.gather(*waiting[1:])] == [200, 200]
    assert (await order("a", dry)).status_code == 200


async def test_what_goes_on_in_the_background_has_a_bound(tmp_path: Path) -> None:
    """Compactions and jobs count together; a repeated request has its answer, and what is cancelled makes room."""
    async with open_api(tmp_path, environment={"THREADMARK_BACKGROUND_JOBS_MAX": "2"}) as api:
        keys = {name: await api.key(Scope.ADMIN, tenant_id=name) for name in ("a", "b")}
        threads = {name: await long_thread(api, key) for name, key in keys.items()}

        async def compaction(name: str, key: str) -> Any:
            path, headers = f"/threads/{threads[name]}/compactions", {"idempotency-key": key}
            return await api.call("POST", path, keys[name], json={"policy": POLICY}, headers=headers)

        async def job(name: str, key: str) -> Any:
            headers = {"idempotency-key": key}
            return await api.call("POST", "/admin/compaction-jobs", keys[name], json={}, headers=headers)

        first, second = await compaction("a", "1"), await job("a", "2")
        assert (first.status_code, second.status_code) == (202, 202)
        assert refused(await compaction("a", "3"), "background_jobs")
        assert refused(await job("a", "4"), "background_jobs")
        assert (await compaction("a", "1")).json() == first.json()
        assert (await job("a", "2")).json() == second.json()
        assert (await compaction("b", "1")).status_code == (await job("b", "2")).status_code == 202
        await api.call("POST", f"/admin/compaction-jobs/{second.json()['job_id']}/cancel", keys["a"])
        assert (await compaction("a", "3")).status_code == 202


async def test_open_streams_have_a_bound(tmp_path: Path) -> None:
    """What is refused begins no run and cancels none; a repeated request has its answer, and who leaves makes room."""
    async with (
        serve_live(tmp_path, environment={"THREADMARK_OPEN_STREAMS_MAX": "2"}) as live,
        AsyncExitStack() as stack,
    ):
        a, b = [await stack.enter_async_context(_client(live, tenant)) for tenant in ("a", "b")]
        body = {"assistant_id": "chat", "input": {"messages": "hello"}}
        kept: dict[str, Any] = {"headers": {"idempotency-key": "kept"}, "json": {**body, "if_not_exists": "create"}}
        over, thread = str(uuid4()), (await a.post("/threads", json={})).json()["thread_id"]
        waiting = asyncio.create_task(a.post(f"/threads/{over}/runs/wait", **kept))
        await wait_until(lambda: _runs(a, over), description="a run to be accepted")
        (run,) = await _runs(a, over)
        await a.post(f"/threads/{over}/runs/{run['run_id']}/cancel")
        ended = await waiting
        run = (await a.post(f"/threads/{thread}/runs", json=body)).json()
        path = f"/threads/{thread}/runs/{run['run_id']}"
        job = (await a.post("/admin/compaction-jobs", json={})).json()
        leaving = AsyncExitStack()
        await leaving.enter_async_context(a.stream("GET", f"{path}/stream"))
        await stack.enter_async_context(a.stream("GET", f"/admin/compaction-jobs/{job['job_id']}/events"))

        refusals: list[tuple[str, str, dict[str, Any]]] = [
            ("GET", f"{path}/stream", {}),
            ("GET", f"{path}/join", {}),
            ("POST", f"{path}/cancel?wait=true", {}),
            ("POST", f"/threads/{thread}/runs/stream", {"json": body}),
            ("POST", f"/threads/{thread}/runs/wait", {"json": body}),
            ("POST", "/runs/stream", {"json": body}),
            ("GET", f"/admin/compaction-jobs/{job['job_id']}/events", {}),
        ]
        for method, refusing, request in refusals:
            assert refused(await a.request(method, refusing, **request), "open_streams")
        assert [each["status"] for each in await _runs(a, thread)] == ["pending"]
        again = await a.post(f"/threads/{over}/runs/wait", **kept)
        assert (again.status_code, again.json()) == (ended.status_code, ended.json()) == (200, ended.json())
        async with b.stream("POST", "/runs/stream", json=body) as theirs:
            assert theirs.status_code == 200
        await leaving.aclose()

        async def has_room() -> bool:
            async with a.stream("GET", f"{path}/stream") as answer:
                return answer.status_code == 200

        await wait_until(has_room, description="room for another stream")


@pytest.fixture(params=["sqlite", "postgresql"])
async def waiting_room(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Live]:
    """A server with a worker, over each database, where a tenant may keep little waiting."""
    environment = {"THREADMARK_SCHEDULED_RUNS_MAX": "2", "THREADMARK_OPEN_WAITS_MAX": "1"}
    if request.param == "postgresql":
        environment["THREADMARK_STATE_DATABASE_URL"] = request.getfixturevalue("postgres_url")
    async with serve_live(tmp_path, environment=environment, with_worker=True) as live:
        yield live


async def test_scheduled_runs_have_a_bound(waiting_room: Live) -> None:
    """With a thread, without, and in batches, which are taken whole or not at all; runs that are due are none."""
    async with _client(waiting_room, "a") as a, _client(waiting_room, "b") as b:
        now = {"assistant_id": "chat", "input": {"messages": "hello"}}
        later = {**now, "after_seconds": 3_600}
        thread = (await a.post("/threads", json={})).json()["thread_id"]
        first = await a.post(f"/threads/{thread}/runs", json=later)
        second = await a.post("/runs", json=later, headers={"idempotency-key": "second"})
        assert (first.status_code, second.status_code) == (200, 200)

        for path, body in (("/runs", later), (f"/threads/{thread}/runs", later), ("/runs/batch", [now, later])):
            answer = await a.post(path, json=body)
            assert refused(answer, "scheduled_runs")
            assert 3_000 < int(answer.headers["retry-after"]) <= 3_600
        assert (await a.post("/runs", json=later, headers={"idempotency-key": "second"})).json() == second.json()
        assert (await a.post("/runs", json=now)).status_code == 200
        assert refused(await b.post("/runs/batch", json=[later] * 3), "scheduled_runs")
        assert (await b.post("/runs/batch", json=[later] * 2)).status_code == 200
        assert (await a.post(f"/threads/{thread}/runs/{first.json()['run_id']}/cancel")).status_code == 202
        assert (await a.post("/runs", json=later)).status_code == 200


async def test_open_questions_have_a_bound(waiting_room: Live) -> None:
    """Runs that answer are accepted, and those on the thread that asks; a repeated request has its answer."""
    async with _client(waiting_room, "a") as a, _client(waiting_room, "b") as b:
        asking = {"assistant_id": "refund", "input": {"messages": 'call refund {"order_id": "1", "amount_cents": 5}'}}
        harmless = {"assistant_id": "chat", "input": {"messages": "hello"}}
        asks, other = [(await a.post("/threads", json={})).json()["thread_id"] for _ in range(2)]
        before = await a.post("/runs", json=harmless, headers={"idempotency-key": "before"})
        assert "__interrupt__" in (await a.post(f"/threads/{asks}/runs/wait", json=asking)).json()

        for path in ("/runs", "/runs/wait", f"/threads/{other}/runs"):
            assert refused(await a.post(path, json=harmless), "open_waits")
        assert refused(await a.post("/runs/batch", json=[harmless]), "open_waits")
        assert (await a.post("/runs", json=harmless, headers={"idempotency-key": "before"})).json() == before.json()
        assert "__interrupt__" in (await b.post("/runs/wait", json=asking)).json()
        never_mind = {**asking, "input": {"messages": "never mind"}}
        assert (await a.post(f"/threads/{asks}/runs/wait", json=never_mind)).status_code == 200
        assert "__interrupt__" in (await a.post(f"/threads/{asks}/runs/wait", json=asking)).json()
        answer = {"assistant_id": "refund", "command": {"resume": False}}
        assert (await a.post(f"/threads/{asks}/runs/wait", json=answer)).status_code == 200
        assert (await a.post(f"/threads/{other}/runs/wait", json=harmless)).status_code == 200


def _client(live: Live, tenant_id: str) -> "AbstractAsyncContextManager[httpx.AsyncClient]":
    @asynccontextmanager
    async def client() -> AsyncIterator[httpx.AsyncClient]:
        key = await make_key(live.resources, Scope.ADMIN, tenant_id=tenant_id)
        async with httpx.AsyncClient(base_url=live.url, headers={"x-api-key": key}, timeout=LONG_S) as made:
            yield made

    return client()


async def _runs(client: httpx.AsyncClient, thread_id: str) -> Any:
    answer = await client.get(f"/threads/{thread_id}/runs")
    return answer.json() if answer.status_code == 200 else []
