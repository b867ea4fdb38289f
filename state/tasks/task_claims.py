"""Which worker performs a task, under which fence, and how the task ends.

As with runs, a worker's lease covers everything that it has claimed, and the database's clock decides. A claim raises
the task's fence. Every write about the task carries the fence, so later writes of a former owner are refused.
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
from threadmark.state.runs.claim_statements import SUSPECT_DEATH_COUNT
from threadmark.state.tasks.tasks import Task, TaskStatus, task_of

__all__ = [
    "DEATH_COUNT_MAX",
    "HeldTask",
    "claim_suspect_task",
    "claim_task",
    "claim_tasks",
    "fail_task",
    "finish_task",
    "has_suspect_task",
    "next_task_us",
    "own_tasks",
    "release_task",
    "report_task",
]

#: After this many workers died at a task without progress in between, no other worker gets it.
DEATH_COUNT_MAX = 5
QUARANTINED = "Quarantined"
#: Suspects that one claim looks at: it ends the deadly ones, and takes one of the others.
SUSPECT_COUNT_MAX = 20
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

#: As with runs: a task at which so many workers died is tried alone, so that its neighbours are not blamed with it.
_is_suspect = and_(_is_orphan, _task.deaths >= SUSPECT_DEATH_COUNT)
_is_ordinary = and_(_is_orphan, _task.deaths < SUSPECT_DEATH_COUNT)
_orphans = (
    select(_task.number, _task.deaths)
    .where(_is_served)
    .order_by(_task.number)
    .limit(bindparam("count_max"))
    .with_for_update(skip_locked=True)
)

#: Running tasks whose owner has no live lease: all but the suspects, and the suspects.
ORPHANS = _orphans.where(_is_ordinary)
SUSPECTS = _orphans.where(_is_suspect)

_due = select(_task.number).where(_is_due, _is_served).order_by(_task.due_at, _task.number)

#: Pending tasks that are due.
DUE = _due.limit(bindparam("count_max")).with_for_update(skip_locked=True)

#: The same for the task with this id.
DUE_TASK = _due.where(_task.task_id == bindparam("id")).with_for_update(skip_locked=True)

#: Begin an attempt of the tasks; those that were running count as a death.
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

#: End tasks that repeatedly killed their workers.
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

#: The tasks that a worker owns.
OWN = select(_task.number, _task.task_id, _task.fence).where(
    _task.status == RUNNING, _task.owner == bindparam("worker_id")
)

#: How long until a task is claimable.
NEXT = select(
    select(func.min(_task.due_at)).where(_task.status == PENDING, _is_served).scalar_subquery(),
    exists().where(_is_ordinary, _is_served),
    database_now_us(),
)

#: Whether a suspect waits.
HAS_SUSPECT = select(exists().where(_is_suspect, _is_served))

#: End an attempt successfully.
FINISH = (
    update(tables.task)
    .where(_is_held)
    .values(status=TaskStatus.DONE, owner=None, result=bindparam("to_result"), updated_at=database_now_us())
)

#: End an attempt with a failure: retry later, or never.
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

#: Break an attempt off through no fault of the task.
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

#: Store progress. Repeating the same progress does not count: such a task would otherwise kill workers for ever.
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
    """A task that a worker owns, and its fence."""

    number: int
    task_id: str
    fence: int


def claim_tasks(connection: Connection, worker_id: str, kinds: Collection[str], count_max: int) -> list[Task]:
    """Take up to `count_max` tasks of `kinds`: first those of dead workers, then those that are due.

    Suspects, at which workers died repeatedly, are left to `claim_suspect_task`.
    """
    wanted = {"kinds": list(kinds), "count_max": count_max}
    taken = [row.number for row in connection.execute(ORPHANS, wanted)]
    if len(taken) < count_max:
        due = connection.execute(DUE, {**wanted, "count_max": count_max - len(taken)})
        taken += [row.number for row in due]
    return _take(connection, worker_id, taken)


def claim_suspect_task(connection: Connection, worker_id: str, kinds: Collection[str]) -> Task | None:
    """Take one task at which workers died repeatedly; None if there is none.

    The worker takes nothing else until the task has progressed: if the worker dies, this task is the cause. A task at
    which DEATH_COUNT_MAX workers died in a row fails instead.
    """
    suspects = connection.execute(SUSPECTS, {"kinds": list(kinds), "count_max": SUSPECT_COUNT_MAX}).all()
    deadly = [row.number for row in suspects if row.deaths + 1 >= DEATH_COUNT_MAX]
    if deadly:
        connection.execute(QUARANTINE, {"numbers": deadly, "why": _spell(_quarantined())})
    tried = [row.number for row in suspects if row.number not in deadly][:1]
    return next(iter(_take(connection, worker_id, tried)), None)


def has_suspect_task(connection: Connection, kinds: Collection[str]) -> bool:
    """Whether a task of `kinds` waits at which workers died repeatedly."""
    return bool(connection.execute(HAS_SUSPECT, {"kinds": list(kinds)}).scalar())


def claim_task(connection: Connection, worker_id: str, kinds: Collection[str], task_id: str) -> Task | None:
    """Take this task, if it is pending, due and one of `kinds`; otherwise None."""
    due = connection.execute(DUE_TASK, {"kinds": list(kinds), "id": task_id})
    return next(iter(_take(connection, worker_id, [row.number for row in due])), None)


def next_task_us(connection: Connection, kinds: Collection[str]) -> int | None:
    """Microseconds until a task of `kinds`, no suspect, is claimable (0: now); None if there is none."""
    due_at, has_orphan, now = connection.execute(NEXT, {"kinds": list(kinds)}).one()
    if has_orphan:
        return 0
    return None if due_at is None else max(0, due_at - now)


def own_tasks(connection: Connection, worker_id: str) -> list[HeldTask]:
    """The tasks that a worker owns, according to the database."""
    rows = connection.execute(OWN, {"worker_id": worker_id})
    return [HeldTask(number=row.number, task_id=row.task_id, fence=row.fence) for row in rows]


def report_task(connection: Connection, held: HeldTask, progress: Any) -> bool:
    """Store the task's progress. False, with nothing stored, if it was taken or cancelled meanwhile."""
    return _done(connection, REPORT, held, to_progress=_spell(progress))


def finish_task(connection: Connection, held: HeldTask, result: Any) -> bool:
    """End the task with its result. False, with nothing changed, if it was taken or cancelled meanwhile."""
    return _done(connection, FINISH, held, to_result=_spell(result))


def fail_task(connection: Connection, held: HeldTask, failure: Failure, *, retry_in_us: int | None) -> bool:
    """End the attempt with an error; the next is due after `retry_in_us`, or the task has failed (None).

    False, with nothing changed, if the task was taken or cancelled meanwhile.
    """
    status = TaskStatus.FAILED if retry_in_us is None else TaskStatus.PENDING
    return _done(connection, FAIL, held, to_status=status, delay_us=retry_in_us or 0, why=_spell(failure))


def release_task(connection: Connection, held: HeldTask, *, delay_us: int = 0) -> bool:
    """Release an unfinished task; it is due again after `delay_us`. False if it was taken meanwhile."""
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
    return Failure(QUARANTINED, f"{DEATH_COUNT_MAX} workers in a row died at this task without making progress.")
