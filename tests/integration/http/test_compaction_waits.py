"""Who performs a compaction that a request waits for: a process whose death would be noticed at once."""

import pytest

from tests.support.api import Api
from tests.support.compacting import POLICY, long_thread
from threadmark.app.runs import compaction_request
from threadmark.state import expire, register

LEASE_S = 600.0


async def test_a_server_without_a_worker_leaves_it_to_those_that_have_one(
    api: Api, admin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a worker lives the request waits for it; where none does, the server performs it itself."""
    monkeypatch.setattr(compaction_request, "WAIT_S", 0.3)
    thread_id = await long_thread(api, admin)
    path, body = f"/threads/{thread_id}/compactions", {"policy": POLICY, "wait": True}
    database = api.resources.database
    await database.write(lambda connection: register(connection, "elsewhere", LEASE_S, '{"chat": "1"}'))
    left = await api.call("POST", path, admin, json=body, headers={"idempotency-key": "left"})
    await database.write(lambda connection: expire(connection, ["elsewhere"]))
    done = await api.call("POST", path, admin, json=body, headers={"idempotency-key": "done"})

    assert (left.status_code, left.json()["status"]) == (202, "planned")
    assert (done.status_code, done.json()["status"]) == (200, "committed")
