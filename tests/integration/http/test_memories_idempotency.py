"""One Idempotency-Key on changes of memory is one change."""

import asyncio
import json
from typing import Any

import pytest

from tests.integration.http.test_memories import ITEM, tell
from tests.support.api import Api
from threadmark.app.requests import idempotent_requests


async def test_the_same_key_makes_it_once(api: Api, admin: str) -> None:
    """The stored answer is sent again, marked; another body under the key is refused."""
    key = {"idempotency-key": "tea-1"}
    first = await api.call("POST", "/memories", admin, json={"items": [ITEM]}, headers=key)
    again = await api.call("POST", "/memories", admin, json={"items": [ITEM]}, headers=key)
    other = await api.call("POST", "/memories", admin, json={"items": [ITEM | {"text": "x"}]}, headers=key)
    memory_id = first.json()["items"][0]["memory_id"]

    assert (again.content, again.headers["idempotent-replayed"]) == (first.content, "true")
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert len((await api.call("GET", f"/memories/{memory_id}", admin)).json()["provenance"]) == 1

    undone = [
        await api.call(
            "POST", f"/memories/{memory_id}/retract", admin, json={"reason": "no"}, headers={"idempotency-key": "r-1"}
        )
        for _ in range(2)
    ]
    assert [each.status_code for each in undone] == [200, 200]


async def test_eight_equal_changes_at_once_are_one(api: Api, admin: str) -> None:
    """Later ones wait for the first and get its answer: retract, undo, quarantine and release."""
    (memory_body,) = await tell(api, admin, ITEM | {"source": {"thread_ref": "t-1"}})
    memory = f"/memories/{memory_body['memory_id']}"

    async def eight(path: str, key: str, body: dict[str, Any] | None = None) -> Any:
        options: dict[str, Any] = {"headers": {"idempotency-key": key}} | ({} if body is None else {"json": body})
        answers = await asyncio.gather(*(api.call("POST", path, admin, **options) for _ in range(8)))
        assert [each.status_code for each in answers] == [200] * 8
        assert sorted("idempotent-replayed" in each.headers for each in answers) == [False] + [True] * 7
        (body_of_all,) = {each.content for each in answers}
        return json.loads(body_of_all)

    await eight(f"{memory}/retract", "k-1", {"reason": "no"})
    await eight(f"{memory}/undo", "k-2")
    held = await eight("/memories/quarantine", "k-3", {"source": {"thread_ref": "t-1"}, "reason": "odd"})
    released = await eight(f"/memories/quarantine/{held['quarantine_id']}/release", "k-4")

    assert (held["held_count"], released["released_count"]) == (1, 1)


async def test_a_change_that_takes_long_is_asked_for_later(
    api: Api, admin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its equal is 409 with `Retry-After`, and changes nothing."""
    monkeypatch.setattr(idempotent_requests, "WAIT_S", 0.05)
    headers = {"idempotency-key": "slow"}

    async with api.resources.request_locks.one_at_a_time(("default", "slow")):
        refused = await api.call("POST", "/memories", admin, json={"items": [ITEM]}, headers=headers)
    made = await api.call("POST", "/memories", admin, json={"items": [ITEM]}, headers=headers)

    assert (refused.status_code, refused.json()["code"]) == (409, "idempotency_key_in_progress")
    assert "retry-after" in refused.headers
    assert made.status_code == 200
