"""Tasks: background work that is recorded together with its cause and performed by any worker.

Tenant, kind and key identify a task, so adding it twice creates one task. Its payload refers to its subject by ids;
private data stays where the ids lead, so erasing it there is enough. Claims and ends are in
`threadmark.state.tasks.task_claims`.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, delete, func, select, update

from threadmark.db.portable import insert_new
from threadmark.state import tables
from threadmark.state.entries.entry import Failure
from threadmark.state.entries.ids import new_id
from threadmark.state.entries.instants import FAR_US, database_now_us, from_us
from threadmark.state.errors import Conflict, NotFound

__all__ = [
    "NewTask",
    "Task",
    "TaskCount",
    "TaskStatus",
    "add_task",
    "cancel_task",
    "count_tasks",
    "find_named",
    "find_task",
    "get_task",
    "list_tasks",
    "prune_tasks",
    "retry_task",
    "task_of",
]

#: How long done and cancelled tasks are kept (seconds); failed ones stay until they are retried or cancelled.
KEEP_S = 30 * 24 * 3600
_TASK = tables.task.c


class TaskStatus(StrEnum):
    """The status of a task."""

    PENDING = "pending"  #: waits until it is due and a worker is free
    RUNNING = "running"  #: a worker performs it; if that worker dies, another takes it over
    DONE = "done"
    FAILED = "failed"  #: until an operator retries it
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """A task to add. `key` is unique per tenant and kind; `due_at_us` 0 means at once."""

    tenant_id: str
    kind: str
    key: str
    payload: dict[str, Any]
    due_at_us: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task as other packages see it.

    Attributes:
        number: The order in which tasks were added.
        attempts: How many attempts began; `failures` of them ended in an error.
        deaths: How many workers died at it since its last progress.
        progress: What its handler last reported.
        failure: Why the last failed attempt failed; it stays after a later attempt succeeded.
    """

    number: int
    task_id: str
    tenant_id: str
    kind: str
    key: str
    payload: dict[str, Any]
    status: TaskStatus
    owner: str | None
    fence: int
    attempts: int
    failures: int
    deaths: int
    due_at_us: int
    progress: Any
    result: Any
    failure: Failure | None
    created_at: datetime
    updated_at: datetime

    @property
    def is_paused(self) -> bool:
        """Whether it waits until somebody resumes it."""
        return self.status is TaskStatus.PENDING and self.due_at_us == FAR_US


@dataclass(frozen=True, slots=True)
class TaskCount:
    """The number of tasks of one kind and status."""

    kind: str
    status: TaskStatus
    count: int


def add_task(connection: Connection, new: NewTask, now_us: int) -> Task:
    """Add the task, unless the tenant has one of this kind and key, which is then returned unchanged.

    Raises ValueError for an empty tenant, kind or key, which would be ambiguous.
    """
    if not (new.tenant_id and new.kind and new.key):
        raise ValueError("a task needs a tenant, a kind and a key")
    row = insert_new(
        connection,
        tables.task,
        {
            "task_id": new_id(now_us),
            "tenant_id": new.tenant_id,
            "kind": new.kind,
            "key": new.key,
            "payload": msgspec.json.encode(new.payload).decode(),
            "status": TaskStatus.PENDING,
            "fence": 0,
            "attempts": 0,
            "failures": 0,
            "deaths": 0,
            "due_at": new.due_at_us,
            "created_at": now_us,
            "updated_at": now_us,
        },
    )
    if row is not None:
        return task_of(row)
    named = find_named(connection, tenant_id=new.tenant_id, kind=new.kind, key=new.key)
    if named is None:
        raise NotFound("Task", new.key)
    return named


def find_task(connection: Connection, task_id: str) -> Task | None:
    """The task of any tenant with this id; None if there is none."""
    row = connection.execute(select(tables.task).where(_TASK.task_id == task_id)).one_or_none()
    return None if row is None else task_of(row)


def find_named(connection: Connection, *, tenant_id: str, kind: str, key: str) -> Task | None:
    """The tenant's task of this kind and key; None if there is none."""
    row = connection.execute(
        select(tables.task).where(_TASK.tenant_id == tenant_id, _TASK.kind == kind, _TASK.key == key)
    ).one_or_none()
    return None if row is None else task_of(row)


def get_task(connection: Connection, task_id: str, *, tenant_id: str | None = None) -> Task:
    """The task (of that tenant). Raises NotFound."""
    found = find_task(connection, task_id)
    if found is None or tenant_id not in (None, found.tenant_id):
        raise NotFound("Task", task_id)
    return found


def list_tasks(
    connection: Connection,
    *,
    tenant_id: str | None = None,
    kind: str | None = None,
    status: str | None = None,
    count_max: int,
    around: int | None = None,
    backward: bool = False,
) -> list[Task]:
    """Tasks, newest first: those beyond the number `beside`, nearest first. Backward: the newer ones."""
    statement = select(tables.task)
    for column, wanted in ((_TASK.tenant_id, tenant_id), (_TASK.kind, kind), (_TASK.status, status)):
        if wanted is not None:
            statement = statement.where(column == wanted)
    if around is not None:
        statement = statement.where(_TASK.number > around if backward else _TASK.number < around)
    order = _TASK.number.asc() if backward else _TASK.number.desc()
    return [task_of(row) for row in connection.execute(statement.order_by(order).limit(count_max))]


def count_tasks(connection: Connection) -> list[TaskCount]:
    """The number of tasks by kind and status."""
    rows = connection.execute(
        select(_TASK.kind, _TASK.status, func.count())
        .group_by(_TASK.kind, _TASK.status)
        .order_by(_TASK.kind, _TASK.status)
    )
    return [TaskCount(row[0], TaskStatus(row[1]), row[2]) for row in rows]


def cancel_task(connection: Connection, task_id: str) -> Task:
    """End a task that is pending, running or failed; its worker stops, and the worker's result is refused.

    Cancelling a cancelled task has no effect. Raises NotFound, and Conflict for a task that is done.
    """
    connection.execute(
        update(tables.task)
        .where(
            _TASK.task_id == task_id,
            _TASK.status.in_([TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.FAILED]),
        )
        .values(status=TaskStatus.CANCELLED, owner=None, fence=_TASK.fence + 1, updated_at=database_now_us())
    )
    task = get_task(connection, task_id)
    if task.status is not TaskStatus.CANCELLED:
        raise Conflict(f"Task {task_id} is {task.status}; there is nothing to cancel.")
    return task


def retry_task(connection: Connection, task_id: str) -> Task:
    """Retry a failed or cancelled task: it is due at once, and its failures and deaths are reset.

    Raises NotFound, and Conflict for a task in another status.
    """
    retried = connection.execute(
        update(tables.task)
        .where(_TASK.task_id == task_id, _TASK.status.in_([TaskStatus.FAILED, TaskStatus.CANCELLED]))
        .values(status=TaskStatus.PENDING, failures=0, deaths=0, due_at=0, updated_at=database_now_us())
    )
    task = get_task(connection, task_id)
    if retried.rowcount != 1:
        raise Conflict(f"Task {task_id} is {task.status}; only a failed or cancelled task can be retried.")
    return task


def prune_tasks(connection: Connection, now_us: int, count_max: int) -> int:
    """Delete up to `count_max` tasks that were done or cancelled more than KEEP_S ago; returns how many.

    Their keys can then name new tasks.
    """
    old = (
        select(_TASK.number)
        .where(
            _TASK.status.in_([TaskStatus.DONE, TaskStatus.CANCELLED]),
            _TASK.updated_at < now_us - KEEP_S * 1_000_000,
        )
        .limit(count_max)
    )
    return connection.execute(delete(tables.task).where(_TASK.number.in_(old))).rowcount


def task_of(row: Row[Any]) -> Task:
    """The task in a row."""
    return Task(
        number=row.number,
        task_id=row.task_id,
        tenant_id=row.tenant_id,
        kind=row.kind,
        key=row.key,
        payload=msgspec.json.decode(row.payload),
        status=TaskStatus(row.status),
        owner=row.owner,
        fence=row.fence,
        attempts=row.attempts,
        failures=row.failures,
        deaths=row.deaths,
        due_at_us=row.due_at,
        progress=None if row.progress is None else msgspec.json.decode(row.progress),
        result=None if row.result is None else msgspec.json.decode(row.result),
        failure=None if row.error is None else msgspec.json.decode(row.error, type=Failure),
        created_at=from_us(row.created_at),
        updated_at=from_us(row.updated_at),
    )
