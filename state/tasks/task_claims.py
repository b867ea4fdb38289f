"""Who does a task, under which fence, and how it ends.

As with runs, a worker's lease is its right to all it has claimed, and the database's clock decides. A claim raises the
task's fence; whatever is written about the task carries it, so what the former owner still sends is refused.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import Connection, and_, bindparam, case, exists, func, select, update

from threadmark.db.portable import PENDING, RUNNING
from threadmark.state import tables
from threadmark.state.entries.entry import Failure
from threadmark.state.entries.instants import database_now_us
from threadmark.state.tasks.tasks import Task, TaskStatus, task_of

__all__ = [
    "DEATH_COUNT_MAX",
    "HeldTask",
    "claim_task",
    "claim_tasks",
    "fail_task",
    "finish_task",
    "next_task_us",
    "own_tasks",
    "release_task",
    "report_task",
]

#: A task that this many workers died at, without getting any further, is not given to another one.
DEATH_COUNT_MAX = 5
QUARANTINED = "Quarantined"
_task, _worker = tables.task.c, tables.worker.c
_alive = exists().where(and_(_worker.worker_id == _task.owner, _worker.lease_until > database_now_us()))
_is_orphan = and_(_task.status == RUNNING, ~_alive)
_is_due = and_(_task.status == PENDING, _task.due_at <= database_now_us())
_is_served = _task.kind.in_(bindparam("kinds", expanding=True))
_is_held = and_(
    _task.number == bindparam("task_number"),
    _task.fence == bindparam("held_fence"),
    _task.status == RUNNING,
)

#: Running tasks whose owner has no live lease.
ORPHANS = (
    select(_task.number, _task.deaths)
    .where(_is_orphan, _is_served)
    .order_by(_task.number)
    .limit(bindparam("count_max"))
    .with_for_update(skip_locked=True)
)

_due = select(_task.number).where(_is_due, _is_served).order_by(_task.due_at, _task.number)

#: Pending tasks that are due.
DUE = _due.limit(bindparam("count_max")).with_for_update(skip_locked=True)

#: The same, if it is the task of this id.
DUE_TASK = _due.where(_task.task_id == bindparam("id")).with_for_update(skip_locked=True)

#: Tasks begin an attempt; those that were running are counted as what a worker died at.
TAKE = (
    update(tables.task)
    .where(_task.number.in_(bindparam("numbers", expanding=True)))
    .values(
        status=TaskStatus.RUNNING,
        owner=bindparam("worker_id"),
        fence=_task.fence + 1,
        attempts=_task.attempts + 1,
        deaths=case((_task.status == RUNNING, _task.deaths + 1), else_=_task.deaths),
        updated_at=database_now_us(),
    )
    .returning(tables.task)
)

#: Tasks that killed their workers again and again end here.
QUARANTINE = (
    update(tables.task)
    .where(_task.number.in_(bindparam("numbers", expanding=True)))
    .values(
        status=TaskStatus.FAILED,
        owner=None,
        fence=_task.fence + 1,
        deaths=_task.deaths + 1,
        error=bindparam("why"),
        updated_at=database_now_us(),
    )
)

#: What a worker owns.
OWN = select(_task.number, _task.task_id, _task.fence).where(
    _task.status == RUNNING, _task.owner == bindparam("worker_id")
)

#: How long until there is something to claim.
NEXT = select(
    select(func.min(_task.due_at)).where(_task.status == PENDING, _is_served).scalar_subquery(),
    exists().where(_is_orphan, _is_served),
    database_now_us(),
)

#: An attempt ends well.
FINISH = (
    update(tables.task)
    .where(_is_held)
    .values(status=TaskStatus.DONE, owner=None, result=bindparam("to_result"), updated_at=database_now_us())
)

#: An attempt fails: again later, or for good.
FAIL = (
    update(tables.task)
    .where(_is_held)
    .values(
        status=bindparam("to_status"),
        owner=None,
        failures=_task.failures + 1,
        due_at=database_now_us() + bindparam("delay_us"),
        error=bindparam("why"),
        updated_at=database_now_us(),
    )
)

#: An attempt is broken off by no fault of the task's.
GIVE_BACK = (
    update(tables.task)
    .where(_is_held)
    .values(
        status=TaskStatus.PENDING,
        owner=None,
        due_at=database_now_us() + bindparam("delay_us"),
        updated_at=database_now_us(),
    )
)

#: A task got further. Saying the same again is not getting further: it would be killed for ever.
REPORT = (
    update(tables.task)
    .where(_is_held)
    .values(
        deaths=case((_task.progress == bindparam("to_progress"), _task.deaths), else_=0),
        progress=bindparam("to_progress"),
        updated_at=database_now_us(),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldTask:
    """A task that a worker owns, and under which fence."""

    number: int
    task_id: str
    fence: int


def claim_tasks(connection: Connection, worker_id: str, kinds: Collection[str], count_max: int) -> list[Task]:
    """Take up to `count_max` tasks of `kinds`: those of dead workers first, then those that are due.

    A task that DEATH_COUNT_MAX workers died at, one after the other, fails instead.
    """
    wanted = {"kinds": list(kinds), "count_max": count_max}
    orphans = connection.execute(ORPHANS, wanted).all()
    deadly = [row.number for row in orphans if row.deaths + 1 >= DEATH_COUNT_MAX]
    if deadly:
        connection.execute(QUARANTINE, {"numbers": deadly, "why": _spell(_quarantined())})
    taken = [row.number for row in orphans if row.number not in deadly]
    if len(taken) < count_max:
        due = connection.execute(DUE, {**wanted, "count_max": count_max - len(taken)})
        taken += [row.number for row in due]
    return _take(connection, worker_id, taken)


def claim_task(connection: Connection, worker_id: str, kinds: Collection[str], task_id: str) -> Task | None:
    """Take this task, if it is pending, due and of `kinds`; None when it is not, or when there is none."""
    due = connection.execute(DUE_TASK, {"kinds": list(kinds), "id": task_id})
    return next(iter(_take(connection, worker_id, [row.number for row in due])), None)


def next_task_us(connection: Connection, kinds: Collection[str]) -> int | None:
    """Microseconds until there is a task of `kinds` to claim (0: now); None when nothing waits."""
    due_at, has_orphan, now = connection.execute(NEXT, {"kinds": list(kinds)}).one()
    if has_orphan:
        return 0
    return None if due_at is None else max(0, due_at - now)


def own_tasks(connection: Connection, worker_id: str) -> list[HeldTask]:
    """What the database says that a worker owns."""
    rows = connection.execute(OWN, {"worker_id": worker_id})
    return [HeldTask(number=row.number, task_id=row.task_id, fence=row.fence) for row in rows]


def report_task(connection: Connection, held: HeldTask, progress: Any) -> bool:
    """Keep how far the task has got. False when it was taken or cancelled meanwhile: nothing was kept."""
    return _done(connection, REPORT, held, to_progress=_spell(progress))


def finish_task(connection: Connection, held: HeldTask, result: Any) -> bool:
    """End the task with its result. False when it was taken or cancelled meanwhile: nothing was changed."""
    return _done(connection, FINISH, held, to_result=_spell(result))


def fail_task(connection: Connection, held: HeldTask, failure: Failure, *, retry_in_us: int | None) -> bool:
    """End the attempt with an error; another one is due after `retry_in_us`, or none (None: it failed for good).

    False when it was taken or cancelled meanwhile: nothing was changed.
    """
    status = TaskStatus.FAILED if retry_in_us is None else TaskStatus.PENDING
    return _done(connection, FAIL, held, to_status=status, delay_us=retry_in_us or 0, why=_spell(failure))


def release_task(connection: Connection, held: HeldTask, *, delay_us: int = 0) -> bool:
    """Let a task go that was not ended; it is due again after `delay_us`. False when it was taken meanwhile."""
    return _done(connection, GIVE_BACK, held, delay_us=delay_us)


def _take(connection: Connection, worker_id: str, numbers: list[int]) -> list[Task]:
    if not numbers:
        return []
    rows = connection.execute(TAKE, {"numbers": numbers, "worker_id": worker_id})
    return sorted((task_of(row) for row in rows), key=lambda task: numbers.index(task.number))


def _done(connection: Connection, statement: Any, held: HeldTask, **values: Any) -> bool:
    found = {"task_number": held.number, "held_fence": held.fence, **values}
    return connection.execute(statement, found).rowcount == 1


def _spell(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _quarantined() -> Failure:
    return Failure(QUARANTINED, f"{DEATH_COUNT_MAX} workers in a row died at this task without getting any further.")
