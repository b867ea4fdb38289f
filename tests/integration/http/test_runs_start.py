"""Runs over HTTP without a worker: accepted, shown, listed, deleted, and whatever is refused at the door."""

import asyncio
from typing import Any
from unittest.mock import patch

import pytest

from tests.support.agent_server import said
from tests.support.api import Api
from tests.support.waiting import wait_until
from threadmark.app.access import Scope
from threadmark.workers.agents.agent import assistant_id_of

NOWHERE = "00000000-0000-4000-8000-000000000000"
NEW_THREAD = "0b0c1e9a-3a7e-4d0b-9a52-1f2e3d4c5b6a"


@pytest.fixture
async def key(api: Api) -> str:
    """A key that reads and runs."""
    return await api.key(Scope.READ, Scope.RUN)


async def thread(api: Api, key: str) -> str:
    """A new thread."""
    return str((await api.call("POST", "/threads", key)).json()["thread_id"])


async def ask(api: Api, key: str, thread_id: str, **body: Any) -> Any:
    """The answer to a request for a run."""
    return await api.call("POST", f"/threads/{thread_id}/runs", key, json={"assistant_id": "chat", **body})


async def test_an_accepted_run_is_shown_as_it_was_asked_for(api: Api, key: str) -> None:
    """It is pending; `kwargs` is the request, `metadata` the caller's and the assistant's."""
    where = await thread(api, key)

    answer = await ask(api, key, where, input=said("hi"), metadata={"a": 1}, stream_mode=["updates"])

    run = answer.json()
    assert answer.status_code == 200
    assert answer.headers["content-location"] == f"/threads/{where}/runs/{run['run_id']}"
    assert (run["status"], run["thread_id"], run["multitask_strategy"]) == ("pending", where, "enqueue")
    assert run["assistant_id"] == assistant_id_of("chat")
    assert run["metadata"] == {"a": 1, "graph_id": "chat", "assistant_id": assistant_id_of("chat")}
    assert (run["kwargs"]["input"], run["kwargs"]["stream_mode"]) == (said("hi"), ["updates"])
    assert (run["reason"], run["error"], run["parked"], run["attempts"]) == (None, None, None, 0)
    assert (await api.call("GET", answer.headers["content-location"], key)).json() == run
    shown = (await api.call("GET", f"/threads/{where}", key)).json()
    assert (shown["status"], shown["metadata"]["graph_id"]) == ("busy", "chat")


async def test_an_assistant_is_named_by_name_or_id(api: Api, key: str) -> None:
    """Both are the same assistant; anything else is 422 and names those there are."""
    where = await thread(api, key)

    by_id = await ask(api, key, where, assistant_id=assistant_id_of("chat"))
    unknown = await ask(api, key, where, assistant_id="nope")
    missing = await api.call("POST", f"/threads/{where}/runs", key, json={"input": None})

    assert by_id.json()["metadata"]["graph_id"] == "chat"
    assert (unknown.status_code, unknown.json()["path"]) == (422, "$.assistant_id")
    assert "Invalid assistant: 'nope'" in unknown.json()["detail"]
    assert "refund" in unknown.json()["detail"]
    assert missing.status_code == 422


async def test_a_missing_thread_is_made_only_when_asked_for(api: Api, key: str) -> None:
    """`if_not_exists: create` makes it under the id of the caller's choice; otherwise 404."""
    refused = await ask(api, key, NEW_THREAD, input=said("hi"))
    explicit = await ask(api, key, NEW_THREAD, if_not_exists="reject")
    made = await ask(api, key, NEW_THREAD, input=said("hi"), if_not_exists="create")

    assert (refused.status_code, explicit.status_code, made.status_code) == (404, 404, 200)
    assert made.json()["thread_id"] == NEW_THREAD
    assert (await api.call("GET", f"/threads/{NEW_THREAD}", key)).status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/threads/{bad}/runs"),
        ("GET", "/threads/{bad}/runs"),
        ("GET", "/threads/{thread}/runs/{bad}"),
        ("GET", "/threads/{thread}/runs/{bad}/join"),
        ("GET", "/threads/{thread}/runs/{bad}/stream"),
        ("POST", "/threads/{thread}/runs/{bad}/cancel"),
        ("DELETE", "/threads/{thread}/runs/{bad}"),
    ],
)
async def test_an_id_is_a_uuid(api: Api, key: str, method: str, path: str) -> None:
    """422, before anything is looked up."""
    where = path.format(bad="not-an-id", thread=await thread(api, key))

    answer = await api.call(method, where, key, json={"assistant_id": "chat"} if method == "POST" else None)

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_id")


async def test_runs_are_listed_newest_first(api: Api, key: str) -> None:
    """By pages, by status, and with the chosen fields alone; a page has a bound."""
    where = await thread(api, key)
    ids = [(await ask(api, key, where, input=said(str(number)))).json()["run_id"] for number in range(4)]
    await api.call("POST", f"/threads/{where}/runs/{ids[0]}/cancel", key)
    path = f"/threads/{where}/runs"

    everything = (await api.call("GET", path, key)).json()
    page = (await api.call("GET", f"{path}?limit=2&offset=1", key)).json()
    pending = (await api.call("GET", f"{path}?status=pending&select=run_id&select=status", key)).json()
    as_json = (await api.call("GET", f'{path}?status=pending&select=["run_id","status"]', key)).json()

    assert [run["run_id"] for run in everything] == ids[::-1]
    assert [run["run_id"] for run in page] == ids[2:0:-1]
    assert as_json == pending == [{"run_id": run_id, "status": "pending"} for run_id in ids[:0:-1]]
    for query in ("limit=0", "limit=201", "offset=-1", "status=done", "select=secret", "select=[run_id", "unknown=1"):
        assert (await api.call("GET", f"{path}?{query}", key)).status_code == 422
    assert (await api.call("GET", f"/threads/{NOWHERE}/runs", key)).status_code == 404


async def test_a_run_that_has_ended_can_be_taken_off_the_list(api: Api, key: str) -> None:
    """One that has not is 409; one that is not there, or of another thread, is 404."""
    where, elsewhere = await thread(api, key), await thread(api, key)
    run_id = (await ask(api, key, where, input=said("hi"))).json()["run_id"]
    path = f"/threads/{where}/runs/{run_id}"

    early = await api.call("DELETE", path, key)
    await api.call("POST", f"{path}/cancel", key)
    foreign = await api.call("DELETE", f"/threads/{elsewhere}/runs/{run_id}", key)
    done = await api.call("DELETE", path, key)

    assert (early.status_code, foreign.status_code, done.status_code, done.content) == (409, 404, 204, b"")
    assert (await api.call("GET", path, key)).status_code == 404
    assert (await api.call("GET", f"/threads/{where}/runs", key)).json() == []
    assert (await api.call("DELETE", path, key)).status_code == 404


async def test_a_run_that_never_began_is_cancelled_at_once(api: Api, key: str) -> None:
    """202 without a body, or 200 when it was waited for; again, and for one that never was, it is 404."""
    where = await thread(api, key)
    first, second = [(await ask(api, key, where, input=said("hi"))).json()["run_id"] for _ in range(2)]
    path = f"/threads/{where}/runs"

    asked = await api.call("POST", f"{path}/{first}/cancel?wait=0&action=interrupt", key)
    waited = await api.call("POST", f"{path}/{second}/cancel?wait=1&action=rollback", key)
    again = await api.call("POST", f"{path}/{first}/cancel", key)
    nobody = await api.call("POST", f"{path}/{NOWHERE}/cancel", key)

    assert (asked.status_code, asked.content) == (202, b"")
    assert (waited.status_code, waited.json()) == (200, {})
    assert (again.status_code, nobody.status_code) == (404, 404)
    assert (await api.call("GET", f"{path}/{first}", key)).json()["status"] == "interrupted"
    assert (await api.call("GET", f"{path}/{second}", key)).status_code == 404
    assert (await api.call("GET", f"/threads/{where}", key)).json()["status"] == "idle"


async def test_runs_are_cancelled_in_bulk(api: Api, key: str) -> None:
    """Those of a thread, those that are named, or those with a status on every thread; 404 when there are none."""
    here, there = await thread(api, key), await thread(api, key)
    runs = {where: [(await ask(api, key, where)).json()["run_id"] for _ in range(3)] for where in (here, there)}

    async def cancel(body: dict[str, Any], query: str = "") -> int:
        return int((await api.call("POST", f"/runs/cancel{query}", key, json=body)).status_code)

    async def left(where: str) -> int:
        listed = (await api.call("GET", f"/threads/{where}/runs?status=pending", key)).json()
        return len(listed)

    assert await cancel({"thread_id": here, "run_ids": runs[here][:1]}) == 204
    assert (await left(here), await left(there)) == (2, 3)
    assert await cancel({"thread_id": here, "status": "running"}) == 404
    assert await cancel({"thread_id": here}, "?action=rollback") == 204
    assert (await left(here), await left(there)) == (0, 3)
    assert await cancel({"thread_id": here}) == 404
    assert await cancel({"status": "pending"}) == 204
    assert await left(there) == 0
    assert await cancel({"status": "all"}) == 404
    for body in ({}, {"run_ids": runs[here]}, {"status": "done"}, {"thread_id": here, "run_ids": []}, {"all": True}):
        assert await cancel(body) == 422
    assert await cancel({"thread_id": NOWHERE, "status": "all"}) == 404


async def test_a_refused_request_runs_nothing(api: Api, key: str) -> None:
    """422, with the place; the thread stays as it was."""
    where = await thread(api, key)

    for body in (
        {"stream_mode": "debug"},
        {"webhook": "http://127.0.0.1/"},
        {"durability": "async"},
        {"command": {"goto": "model"}},
        {"config": {"configurable": {"model": "x"}}},
        {"tenant_id": "other"},
        {"after_seconds": -1},
    ):
        answer = await ask(api, key, where, **body)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_body")
    assert (await api.call("GET", f"/threads/{where}/runs", key)).json() == []
    assert (await api.call("GET", f"/threads/{where}", key)).json()["status"] == "idle"


async def test_an_answer_for_a_person_needs_the_right_to_give_it(api: Api, key: str) -> None:
    """A key that runs agents cannot approve what they ask; one with `approve` can, if something is asked."""
    where = await thread(api, key)
    approver = await api.key(Scope.RUN, Scope.APPROVE)

    by_runner = await ask(api, key, where, command={"resume": True})
    by_approver = await ask(api, approver, where, command={"resume": True})

    assert (by_runner.status_code, by_runner.json()["code"]) == (403, "forbidden")
    assert (by_approver.status_code, by_approver.json()["code"]) == (409, "nothing_to_resume")


async def test_a_checkpoint_of_nobody_is_not_found(api: Api, key: str) -> None:
    """Neither one that is made up nor one of another thread; an id that is none is 422."""
    where = await thread(api, key)

    made_up = await ask(api, key, where, checkpoint_id="01a22741-0000-8000-8000-000000000001")
    no_id = await ask(api, key, where, checkpoint_id="x")

    assert (made_up.status_code, no_id.status_code) == (404, 422)


async def test_a_batch_is_all_or_nothing(api: Api, key: str) -> None:
    """Each run gets a thread of its own; one that is refused refuses them all."""
    good: dict[str, Any] = {"assistant_id": "chat", "input": said("hi")}

    made = await api.call("POST", "/runs/batch", key, json=[good, {**good, "on_completion": "keep"}])
    refused = await api.call("POST", "/runs/batch", key, json=[{**good, "on_completion": "keep"}, {**good, "x": 1}])
    unknown = await api.call("POST", "/runs/batch", key, json=[good, {"assistant_id": "nope"}])
    empty = await api.call("POST", "/runs/batch", key, json=[])

    assert [run["status"] for run in made.json()] == ["pending", "pending"]
    assert len({run["thread_id"] for run in made.json()}) == 2
    assert [each.status_code for each in (refused, unknown, empty)] == [422, 422, 422]
    assert (await api.call("POST", "/threads/count", key)).json() == 1, "only the kept thread is listed"


async def test_a_crowd_before_one_thread_does_not_stand_before_another(api: Api, key: str) -> None:
    """L3: of what the crowd asks for, one write at a time is on its way to the database; in the end all is accepted."""
    hot, other = await thread(api, key), await thread(api, key)
    database, gate, writes = api.resources.database, asyncio.Event(), list[str]()
    write = database.write

    async def slow(unit: Any, **options: Any) -> Any:
        writes.append("write")
        await gate.wait()
        return await write(unit, **options)

    with patch.object(database, "write", slow):
        crowd = [asyncio.create_task(ask(api, key, hot, input=said(f"{number}"))) for number in range(20)]
        await wait_until(lambda: writes, description="the first of the crowd")
        one = asyncio.create_task(ask(api, key, other, input=said("me too")))
        await wait_until(lambda: len(writes) > 1, description="who came last")
        assert len(writes) == 2
        gate.set()
        answers = [await each for each in (*crowd, one)]

    assert [answer.status_code for answer in answers] == [200] * 21
    assert len(api.resources.thread_locks) == 0
