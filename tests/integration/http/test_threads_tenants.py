"""Tenants: what belongs to one does not exist for another, on every route around a thread."""

import asyncio
from typing import Any

import pytest

from tests.support.service import Service
from threadmark.app.access import Scope

NOWHERE = "00000000-0000-4000-8000-000000000000"
RESOLUTION = {"outcome": "did_not_happen"}
#: Every route with an id of a tenant's in it, and a body that it takes.
ROUTES: list[tuple[str, str, Any]] = [
    ("GET", "/threads/{thread_id}", None),
    ("PATCH", "/threads/{thread_id}", {"metadata": {"a": 1}}),
    ("DELETE", "/threads/{thread_id}", None),
    ("POST", "/threads/{thread_id}/copy", None),
    ("GET", "/threads/{thread_id}/state", None),
    ("GET", "/threads/{thread_id}/state/{checkpoint_id}", None),
    ("POST", "/threads/{thread_id}/state/checkpoint", {"checkpoint": {}}),
    ("POST", "/threads/{thread_id}/state", {"values": {"messages": ["hi"]}}),
    ("POST", "/threads/{thread_id}/history", {}),
    ("GET", "/threads/{thread_id}/history", None),
    ("GET", "/threads/{thread_id}/journal", None),
    ("GET", "/threads/{thread_id}/journal/verify", None),
    ("GET", "/threads/{thread_id}/waits", None),
    ("POST", "/waits/{wait_id}/answer", {"answer": True}),
    ("GET", "/runs/{run_id}/steps", None),
    ("GET", "/runs/{run_id}/recalls", None),
    ("GET", "/threads/{thread_id}/runs/{run_id}/recalls", None),
    ("POST", "/runs/{run_id}/steps/{step_key}/resolve", RESOLUTION),
]


@pytest.fixture(scope="module")
def owned(service: Service) -> dict[str, str]:
    """Ids of a thread, a run that asks, its question and its checkpoint, all of the tenant `owner`; and its key."""

    async def make() -> dict[str, str]:
        key = await service.new_key(Scope.ADMIN, tenant_id="owner")
        async with service.sdk(key) as sdk, service.http(key) as http:
            thread_id = (await sdk.threads.create())["thread_id"]
            asking = 'call refund {"order_id": "A1", "amount_cents": 100}'
            await sdk.runs.wait(thread_id, "refund", input={"messages": asking})
            (run,) = await sdk.runs.list(thread_id)
            (wait,) = (await http.get(f"/threads/{thread_id}/waits")).json()["items"]
            state = await sdk.threads.get_state(thread_id)
        return {
            "key": key,
            "thread_id": thread_id,
            "run_id": run["run_id"],
            "wait_id": wait["wait_id"],
            "step_key": wait["step_key"],
            "checkpoint_id": str(state["checkpoint"]["checkpoint_id"]),
        }

    return asyncio.run(make())


def neutral(text: str, ids: dict[str, str], request_id: str) -> str:
    """A body without what has to differ: the id that was asked for, and that of the request."""
    for each in (request_id, *ids.values()):
        text = text.replace(each, "…")
    return text


@pytest.mark.parametrize(("method", "path", "body"), ROUTES, ids=[f"{method} {path}" for method, path, _ in ROUTES])
async def test_a_foreign_id_looks_like_one_that_never_was(
    service: Service, owned: dict[str, str], method: str, path: str, body: Any
) -> None:
    """404 with the same body; afterwards the owner's thread stands where it stood, and its question is open."""
    stranger = await service.new_key(Scope.ADMIN, tenant_id="stranger")
    nobodys = dict.fromkeys(owned, NOWHERE) | {"step_key": owned["step_key"]}
    async with service.http(stranger) as http, service.http(owned["key"]) as owner:
        before = (await owner.get(f"/threads/{owned['thread_id']}")).content
        foreign = await http.request(method, path.format(**owned), json=body)
        missing = await http.request(method, path.format(**nobodys), json=body)
        after = (await owner.get(f"/threads/{owned['thread_id']}")).content

    assert (foreign.status_code, missing.status_code) == (404, 404)
    assert neutral(foreign.text, owned, foreign.headers["x-request-id"]) == neutral(
        missing.text, {"id": NOWHERE}, missing.headers["x-request-id"]
    )
    assert after == before


async def test_a_stranger_finds_and_counts_its_own_alone(service: Service, owned: dict[str, str]) -> None:
    """Not by id, not by metadata, not by anything."""
    stranger = await service.new_key(Scope.ADMIN, tenant_id="stranger")
    async with service.sdk(stranger) as sdk, service.sdk(owned["key"]) as owner:
        assert await sdk.threads.search(ids=[owned["thread_id"]]) == []
        assert await sdk.threads.search(metadata={"graph_id": "refund"}) == []
        assert await sdk.threads.count() == 0
        assert await owner.threads.count() == 1


async def test_an_id_of_another_tenant_is_free(service: Service, owned: dict[str, str]) -> None:
    """Whether it is taken there is not to be learned here: both have a thread of this id."""
    stranger = await service.new_key(Scope.ADMIN, tenant_id="namesake")
    async with service.sdk(stranger) as sdk:
        made = await sdk.threads.create(thread_id=owned["thread_id"])
        shown = await sdk.threads.get(owned["thread_id"])

    assert made["thread_id"] == owned["thread_id"]
    assert shown["values"] is None
