"""409, 412 and 429 as the OpenAPI document declares them: for each operation the refusal comes, in the shape declared.

Every answer is compared with the document by the client of these tests; here each refusal is brought about.
"""

import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.api import Api, open_api
from threadmark.app.access import Scope
from threadmark.app.access.key import DEFAULT_TENANT
from threadmark.app.requests import idempotent_requests

NOBODY = "00000000-0000-4000-8000-000000000000"
HELD_KEY = "held"
METHODS = ("get", "post", "put", "patch", "delete")
JSON = "application/json"
POLICY = "/compaction-policies/house"


def declaring(document: Mapping[str, Any], status: str) -> dict[str, tuple[str, str, Mapping[str, Any]]]:
    """The operations that declare the status: method, path and description by operation id."""
    return {
        operation["operationId"]: (method, path, operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method in METHODS and status in operation["responses"]
    }


async def document_of(api: Api, key: str) -> Mapping[str, Any]:
    """The document as a reader gets it."""
    answer = await api.call("GET", "/openapi.json", key)
    assert answer.status_code == 200
    document: Mapping[str, Any] = answer.json()
    return document


async def refused(
    api: Api, key: str, method: str, path: str, operation: Mapping[str, Any], body: Any = None, **headers: str
) -> Any:
    """The answer to a request that is well-formed: its body is `body`, or the one that the document shows."""
    content = operation.get("requestBody", {}).get("content", {})
    request: dict[str, Any] = {}
    if JSON in content:
        request["json"] = body or content[JSON].get("example", {})
    elif content:
        (media_type,) = content
        request["content"] = b"{}\n"
        headers["content-type"] = media_type
    needed = {
        each["name"]: "x" for each in operation.get("parameters", ()) if each["required"] and each["in"] == "query"
    }
    place = re.sub(r"\{[^}]+\}", NOBODY, path)
    return await api.call(method.upper(), place, key, headers=headers, params=needed, **request)


@pytest.fixture
async def strict(tmp_path: Path) -> AsyncIterator[Api]:
    """An API that takes one request of a key, and then none until its clock moves."""
    async with open_api(tmp_path, environment={"THREADMARK_RATE_BURST": "1", "THREADMARK_RATE_PER_S": "0.01"}) as api:
        yield api


async def test_every_operation_refuses_a_key_beyond_its_rate(strict: Api) -> None:
    """Before anything else is looked at, with the time at which the same request is welcome."""
    key = await strict.key(Scope.ADMIN, Scope.OPERATOR)
    declared = declaring(await document_of(strict, key), "429")

    for name, (method, path, operation) in declared.items():
        answer = await refused(strict, key, method, path, operation)
        assert (answer.status_code, answer.json()["code"]) == (429, "too_many_requests"), (name, answer.text)
        assert int(answer.headers["retry-after"]) >= 1, name
    assert len(declared) >= 100


async def test_every_operation_with_a_condition_refuses_one_that_fails(api: Api, admin: str) -> None:
    """A version that is not the present one, and a thing that is there where none was wanted; nothing changes."""
    declared = declaring(await document_of(api, admin), "412")
    (_, _, put) = declared["put_policy"]
    body = put["requestBody"]["content"][JSON]["example"]
    made = await api.call("PUT", POLICY, admin, json=body)
    before = await api.call("GET", POLICY, admin)

    stale = '"no version of this"'
    answers = {
        "put_policy": [
            await api.call("PUT", POLICY, admin, json=body, headers={"if-match": stale}),
            await api.call("PUT", POLICY, admin, json=body, headers={"if-none-match": "*"}),
        ],
        "delete_policy": [await api.call("DELETE", POLICY, admin, headers={"if-match": stale})],
    }

    assert made.status_code == 201
    assert answers.keys() == declared.keys()
    assert {each.status_code for found in answers.values() for each in found} == {412}
    assert (await api.call("GET", POLICY, admin)).content == before.content


OF_MEMORY = {
    *("remember", "retract_memory", "undo_memory", "approve_memory", "quarantine", "release", "import_memories"),
}
#: Bodies of those changes of memory for which the document shows none.
BODIES: dict[str, dict[str, Any]] = {"quarantine": {"source": {"thread_ref": "t-1"}, "reason": "odd"}}
#: Operations whose conflict takes a turn of an agent, a task or a compaction to bring about, and the file that does.
ELSEWHERE = {
    "answer": "test_waits.py",
    "resolve_step": "test_steps.py",
    "wait_stateless_run": "test_runs_idempotency.py",
    "retry": "test_tasks.py",
    "cancel": "test_tasks.py",
    "undo": "test_views.py",
}
#: Operations that declare 409 because they take an Idempotency-Key, and are over before an equal one can meet them:
#: it gets the stored answer.
OVER_AT_ONCE = {
    *("create_key", "create_stateless_run", "stream_stateless_run", "create_batch", "duplicate_thread", "erase"),
    *("compact_thread", "create_job", "cancel_job", "restore", "activate", "pin_spans"),
}


async def test_every_change_of_memory_refuses_a_key_that_is_in_progress(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first request with the key has no answer yet: its equals are to come again, and change nothing."""
    monkeypatch.setattr(idempotent_requests, "WAIT_S", 0.02)
    key = await api.key(Scope.ADMIN, Scope.OPERATOR)
    declared = declaring(await document_of(api, key), "409")
    of_memory = {name: each for name, each in declared.items() if name in OF_MEMORY}

    for name, (method, path, operation) in of_memory.items():
        async with api.resources.request_locks.one_at_a_time((DEFAULT_TENANT, HELD_KEY)):
            answer = await refused(api, key, method, path, operation, BODIES.get(name), **{"idempotency-key": HELD_KEY})
        assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_key_in_progress"), (name, answer.text)
        assert int(answer.headers["retry-after"]) >= 1, name
    assert of_memory.keys() == OF_MEMORY


SAID = {"messages": [{"role": "user", "content": "hello"}]}
RUN = {"assistant_id": "chat", "input": SAID}


async def test_every_operation_that_declares_a_conflict_meets_one(api: Api) -> None:
    """With a run that is pending and a job that was cancelled; what others bring about is named above."""
    key = await api.key(Scope.ADMIN, Scope.OPERATOR)
    declared = declaring(await document_of(api, key), "409")
    thread = (await api.call("POST", "/threads", key, json={})).json()["thread_id"]
    run = (await api.call("POST", f"/threads/{thread}/runs", key, json=RUN)).json()["run_id"]
    job = (await api.call("POST", "/admin/compaction-jobs", key, json={})).json()["job_id"]
    assert (await api.call("POST", f"/admin/compaction-jobs/{job}/cancel", key)).status_code == 200
    rival = {**RUN, "multitask_strategy": "reject"}
    conflicts: dict[str, tuple[dict[str, Any] | None, str]] = {
        "create_thread": ({"thread_id": thread, "if_exists": "raise"}, "thread_exists"),
        "create_run": (rival, "thread_busy"),
        "wait_run": (rival, "thread_busy"),
        "stream_run": (rival, "thread_busy"),
        "update_state": ({"values": SAID}, "thread_busy"),
        "remove_run": (None, "conflict"),
        "redrive": ({"run_id": run}, "conflict"),
        "pause_job": (None, "conflict"),
        "resume_job": (None, "conflict"),
    }

    for name, (body, code) in conflicts.items():
        method, path, _ = declared[name]
        place = path.format(thread_id=thread, run_id=run, job_id=job)
        answer = await api.call(method.upper(), place, key, **({} if body is None else {"json": body}))
        assert (answer.status_code, answer.json()["code"]) == (409, code), (name, answer.text)

    sorted_once = [*conflicts, *OF_MEMORY, *ELSEWHERE, *OVER_AT_ONCE]
    assert sorted(sorted_once) == sorted(declared), "an operation that declares 409 has to be in one of the tables"
    assert (await api.call("GET", f"/threads/{thread}/runs/{run}", key)).json()["status"] == "pending"
