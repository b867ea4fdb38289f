"""Background tasks, for their operators: what waits, what failed and why; to retry, and to cancel. Of all tenants."""

from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
from litestar import get, post
from litestar.params import FromPath, QueryParameter

from threadmark.app.access import Scope, needs
from threadmark.app.http.path_ids import uuid_of
from threadmark.app.listing.cursors import Listing
from threadmark.app.listing.pages import PAGE_SIZE, CursorText, PageSize, cut
from threadmark.app.requests import dependencies
from threadmark.state.entries.entry import Failure
from threadmark.state.entries.instants import FAR_US, from_us
from threadmark.state.tasks.tasks import Task, cancel_task, get_task, list_tasks, retry_task

__all__ = ["ROUTES", "ShownBackgroundTask", "TaskPage"]

TaskStatusName = Literal["pending", "running", "done", "failed", "cancelled"]
TenantQuery = Annotated[str | None, QueryParameter(name="tenant_id", description="Whose tasks; all tenants' without.")]
KindQuery = Annotated[str | None, QueryParameter(name="kind", description="Tasks of this kind only.")]
StatusQuery = Annotated[TaskStatusName | None, QueryParameter(name="status", description="Tasks in this status only.")]


class ShownBackgroundTask(msgspec.Struct, kw_only=True):
    """A task. `failures` counts attempts that ended in an error, the last of which is `error`.

    `deaths` counts workers that died at it since it last got further; `due_at` is null for what is due at once.
    """

    task_id: str
    tenant_id: str
    kind: str
    key: str
    payload: dict[str, Any]
    status: TaskStatusName
    worker_id: str | None
    attempts: int
    failures: int
    deaths: int
    due_at: datetime | None
    progress: Any
    result: Any
    error: Failure | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, task: Task) -> "ShownBackgroundTask":
        """The task as it is shown."""
        return cls(
            task_id=task.task_id,
            tenant_id=task.tenant_id,
            kind=task.kind,
            key=task.key,
            payload=task.payload,
            status=task.status.value,
            worker_id=task.owner,
            attempts=task.attempts,
            failures=task.failures,
            deaths=task.deaths,
            due_at=from_us(task.due_at_us) if 0 < task.due_at_us < FAR_US else None,
            progress=task.progress,
            result=task.result,
            error=task.failure,
            created_at=task.created_at,
            updated_at=task.updated_at,
        )


class TaskPage(msgspec.Struct, kw_only=True):
    """Tasks, newest first, and the cursors to the pages beside."""

    items: list[ShownBackgroundTask]
    next: str | None
    previous: str | None


@get("/admin/tasks", opt=needs(Scope.OPERATOR))
async def list_all_tasks(
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    signer: dependencies.CursorSigner,
    limit: PageSize = PAGE_SIZE,
    cursor: CursorText = None,
    tenant: TenantQuery = None,
    kind: KindQuery = None,
    status: StatusQuery = None,
) -> TaskPage:
    """Background tasks, newest first."""
    listing = Listing(caller.tenant_id, "admin/tasks", {"tenant_id": tenant, "kind": kind, "status": status})
    place = None if cursor is None else signer.verify(cursor, listing)
    found = await resources.database.read(
        partial(
            list_tasks,
            tenant_id=tenant,
            kind=kind,
            status=status,
            count_max=limit + 1,
            around=None if place is None else int(place.position[0]),
            backward=place is not None and place.backward,
        )
    )
    page = cut(found, limit, place, lambda task: (task.number,))
    return TaskPage(
        items=[ShownBackgroundTask.of(task) for task in page.rows],
        next=None if page.next is None else signer.sign(page.next, listing),
        previous=None if page.previous is None else signer.sign(page.previous, listing),
    )


@get("/admin/tasks/{task_id:str}", opt=needs(Scope.OPERATOR))
async def read_task(task_id: FromPath[str], resources: dependencies.Resources) -> ShownBackgroundTask:
    """One task: how far it is, its result, and why its last attempt failed."""
    wanted = uuid_of("task", task_id)
    return ShownBackgroundTask.of(await resources.database.read(partial(get_task, task_id=wanted)))


@post("/admin/tasks/{task_id:str}/retry", opt=needs(Scope.OPERATOR), status_code=200)
async def retry(task_id: FromPath[str], resources: dependencies.Resources) -> ShownBackgroundTask:
    """Have a failed or cancelled task done after all, at once."""
    wanted = uuid_of("task", task_id)
    task = await resources.database.write(partial(retry_task, task_id=wanted))
    resources.wired.notifier.notify_task(task.task_id, task.attempts + 1)
    return ShownBackgroundTask.of(task)


@post("/admin/tasks/{task_id:str}/cancel", opt=needs(Scope.OPERATOR), status_code=200)
async def cancel(task_id: FromPath[str], resources: dependencies.Resources) -> ShownBackgroundTask:
    """End a task; a worker that is at it stops within a sweep, and what it ends with is refused."""
    wanted = uuid_of("task", task_id)
    task = await resources.database.write(partial(cancel_task, task_id=wanted))
    resources.wired.notifier.notice([task.task_id])
    return ShownBackgroundTask.of(task)


ROUTES = [list_all_tasks, read_task, retry, cancel]
