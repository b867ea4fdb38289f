"""Bounds per tenant: 429 with the name of the bound, and a neighbour who is not at its own is served."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.api import Api, open_api
from tests.support.compacting import POLICY, long_thread
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
