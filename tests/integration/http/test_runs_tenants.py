"""Tenants: another one's run does not exist, on every route that names one."""

from typing import Any

import pytest

from tests.support.api import Api
from threadmark.app.access import Scope

NOWHERE = "00000000-0000-4000-8000-000000000000"
RUN: dict[str, Any] = {"assistant_id": "chat", "input": {"messages": "hi"}}
RUN_PATH = "/threads/{thread_id}/runs/{run_id}"
#: Every route with an id of a run, or of the thread that it is to move, and a body that it takes.
ROUTES: list[tuple[str, str, Any]] = [
    ("POST", "/threads/{thread_id}/runs", RUN),
    ("POST", "/threads/{thread_id}/runs/stream", RUN),
    ("POST", "/threads/{thread_id}/runs/wait", RUN),
    ("GET", "/threads/{thread_id}/runs", None),
    ("GET", RUN_PATH, None),
    ("GET", RUN_PATH + "/join", None),
    ("GET", RUN_PATH + "/stream", None),
    ("POST", RUN_PATH + "/cancel", None),
    ("DELETE", RUN_PATH, None),
    ("POST", "/runs/cancel", {"thread_id": "{thread_id}", "run_ids": ["{run_id}"]}),
    ("POST", "/runs/cancel", {"thread_id": "{thread_id}", "status": "all"}),
]


def filled(part: Any, ids: dict[str, str]) -> Any:
    """A path or a body with the ids in it."""
    if isinstance(part, str):
        return part.format(**ids)
    if isinstance(part, list):
        return [filled(each, ids) for each in part]
    return {name: filled(each, ids) for name, each in part.items()} if isinstance(part, dict) else part


def neutral(answer: Any, ids: dict[str, str]) -> str:
    """A body without what has to differ: the ids that were asked for, and that of the request."""
    text = str(answer.text)
    for each in (answer.headers["x-request-id"], *ids.values()):
        text = text.replace(each, "…")
    return text


@pytest.mark.parametrize(("method", "path", "body"), ROUTES, ids=[f"{method} {path}" for method, path, _ in ROUTES])
async def test_a_foreign_run_looks_like_one_that_never_was(api: Api, method: str, path: str, body: Any) -> None:
    """404 with the same body, by a key that may do everything at home; the owner's run is as it was."""
    owner = await api.key(Scope.ADMIN, tenant_id="owner")
    stranger = await api.key(Scope.ADMIN, tenant_id="stranger")
    thread_id = (await api.call("POST", "/threads", owner)).json()["thread_id"]
    run = (await api.call("POST", f"/threads/{thread_id}/runs", owner, json=RUN)).json()
    ids = {"thread_id": thread_id, "run_id": run["run_id"]}
    nobodys = {"thread_id": NOWHERE, "run_id": NOWHERE}

    foreign = await api.call(method, filled(path, ids), stranger, json=filled(body, ids))
    missing = await api.call(method, filled(path, nobodys), stranger, json=filled(body, nobodys))

    assert (foreign.status_code, missing.status_code) == (404, 404)
    assert neutral(foreign, ids) == neutral(missing, nobodys)
    assert (await api.call("GET", filled(RUN_PATH, ids), owner)).json() == run
    assert len((await api.call("GET", f"/threads/{thread_id}/runs", owner)).json()) == 1


async def test_a_foreign_run_is_not_reached_through_ones_own_thread(api: Api) -> None:
    """The id of another tenant's run below a thread of one's own is nobody's."""
    owner, stranger = await api.key(Scope.ADMIN, tenant_id="owner"), await api.key(Scope.ADMIN, tenant_id="stranger")
    theirs = (await api.call("POST", "/threads", owner)).json()["thread_id"]
    mine = (await api.call("POST", "/threads", stranger)).json()["thread_id"]
    run = (await api.call("POST", f"/threads/{theirs}/runs", owner, json=RUN)).json()["run_id"]

    for method, path in (("GET", ""), ("GET", "/join"), ("GET", "/stream"), ("POST", "/cancel"), ("DELETE", "")):
        assert (await api.call(method, f"/threads/{mine}/runs/{run}{path}", stranger)).status_code == 404
    assert (await api.call("POST", "/runs/cancel", stranger, json={"status": "all"})).status_code == 404
    assert (await api.call("GET", f"/threads/{theirs}/runs/{run}", owner)).json()["status"] == "pending"


async def test_a_foreign_wait_is_not_answered(api: Api) -> None:
    """A resume answers questions of its own thread, whatever ids it names."""
    stranger = await api.key(Scope.ADMIN, tenant_id="stranger")
    mine = (await api.call("POST", "/threads", stranger)).json()["thread_id"]

    answer = await api.call(
        "POST",
        f"/threads/{mine}/runs",
        stranger,
        json={"assistant_id": "refund", "command": {"resume": {NOWHERE: True}}},
    )

    assert (answer.status_code, answer.json()["code"]) == (409, "nothing_to_resume")
    assert (await api.call("GET", f"/threads/{mine}/runs", stranger)).json() == []
