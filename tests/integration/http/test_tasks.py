"""/admin/tasks: what waits and what failed, for operators; retried and cancelled by them."""

from typing import Any

import pytest

from tests.support.api import Api
from threadmark.app.access import Scope
from threadmark.state.entries.entry import Failure
from threadmark.state.runs.worker_leases import register
from threadmark.state.tasks.task_claims import HeldTask, claim_tasks, fail_task
from threadmark.state.tasks.tasks import NewTask, Task, add_task

TASKS = "/admin/tasks"
NOBODY = "01a22812-7193-7bcd-8304-da4549f015ef"


async def added(api: Api, key: str, tenant_id: str = "default", kind: str = "mend") -> Task:
    """A task that waits for a worker."""
    new = NewTask(tenant_id=tenant_id, kind=kind, key=key, payload={"part": key})
    now_us = api.resources.wired.now_us()
    return await api.resources.database.write(lambda connection: add_task(connection, new, now_us))


async def failed(api: Api) -> None:
    """Everything that waits has been tried, and has failed for good."""

    def unit(connection: Any) -> None:
        register(connection, "worker-1", 60, "{}")
        for task in claim_tasks(connection, "worker-1", ["mend"], 9):
            held = HeldTask(number=task.number, task_id=task.task_id, fence=task.fence)
            fail_task(connection, held, Failure("ValueError", "it broke"), retry_in_us=None)

    await api.resources.database.write(unit)


async def test_operators_see_the_tasks_of_all_tenants(api: Api, operator: str) -> None:
    """Newest first, page by page, by tenant, kind and status."""
    tasks = [await added(api, f"{number}", f"tenant-{number % 2}") for number in range(5)]
    ids = [each.task_id for each in tasks]

    first = (await api.call("GET", TASKS, operator, params={"limit": 2})).json()
    second = (await api.call("GET", TASKS, operator, params={"limit": 2, "cursor": first["next"]})).json()
    back = (await api.call("GET", TASKS, operator, params={"limit": 2, "cursor": second["previous"]})).json()

    assert [each["task_id"] for each in first["items"] + second["items"]] == [ids[4], ids[3], ids[2], ids[1]]
    assert back["items"] == first["items"]
    mine = (await api.call("GET", TASKS, operator, params={"tenant_id": "tenant-1"})).json()
    assert [each["task_id"] for each in mine["items"]] == [ids[3], ids[1]]
    assert (await api.call("GET", TASKS, operator, params={"status": "failed"})).json()["items"] == []
    assert (await api.call("GET", TASKS, operator, params={"kind": "paint"})).json()["items"] == []
    assert (await api.call("GET", TASKS, operator, params={"status": "lost"})).status_code == 422
    other = {"limit": 2, "cursor": first["next"], "kind": "mend"}
    assert (await api.call("GET", TASKS, operator, params=other)).json()["code"] == "bad_cursor"


async def test_a_failed_task_says_why_and_is_retried(api: Api, operator: str) -> None:
    """The reason stays; the task waits for a worker again."""
    task = await added(api, "one")
    await failed(api)
    shown = (await api.call("GET", f"{TASKS}/{task.task_id}", operator)).json()
    assert (shown["status"], shown["failures"], shown["worker_id"]) == ("failed", 1, None)
    assert shown["error"] == {"error": "ValueError", "message": "it broke"}

    retried = await api.call("POST", f"{TASKS}/{task.task_id}/retry", operator)

    assert (retried.status_code, retried.json()["status"], retried.json()["failures"]) == (200, "pending", 0)
    again = await api.call("POST", f"{TASKS}/{task.task_id}/retry", operator)
    assert (again.status_code, again.json()["code"]) == (409, "conflict")


async def test_a_task_is_cancelled_once(api: Api, operator: str) -> None:
    """Asking again is no error; the task can be retried."""
    task = await added(api, "one")

    answers = [await api.call("POST", f"{TASKS}/{task.task_id}/cancel", operator) for _ in range(2)]

    assert [(each.status_code, each.json()["status"]) for each in answers] == [(200, "cancelled")] * 2
    assert (await api.call("POST", f"{TASKS}/{task.task_id}/retry", operator)).json()["status"] == "pending"


async def test_tasks_are_for_operators_and_a_made_up_one_nobodys(api: Api, operator: str) -> None:
    """A key of one tenant, even an administrator's, learns nothing of any task, existing or not."""
    task = await added(api, "one")
    admin = await api.key(Scope.ADMIN)
    for method, path in (("GET", ""), ("POST", "/retry"), ("POST", "/cancel")):
        for task_id in (task.task_id, NOBODY):
            assert (await api.call(method, f"{TASKS}/{task_id}{path}", admin)).status_code == 403
        assert (await api.call(method, f"{TASKS}/{NOBODY}{path}", operator)).status_code == 404
        assert (await api.call(method, f"{TASKS}/nobody{path}", operator)).status_code == 422


@pytest.mark.parametrize("scope", [Scope.READ, Scope.ADMIN])
async def test_the_list_is_for_operators(api: Api, scope: Scope) -> None:
    """It is of all tenants together."""
    assert (await api.call("GET", TASKS, await api.key(scope))).status_code == 403
