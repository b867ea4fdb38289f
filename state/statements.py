"""The statements of the claim and settle paths, built once: building one costs several times what it takes to run it.

Portable: the same text serves SQLite (where FOR UPDATE SKIP LOCKED is silently left out, its one writer needs none)
and PostgreSQL.
"""

from sqlalchemy import and_, bindparam, case, exists, func, or_, select, update

from state import tables
from state.instants import FAR_US, database_now_us
from state.run import ParkReason, RunStatus, ThreadStatus

__all__ = [
    "ACTIVE",
    "CANCEL",
    "COUNT_ORPHAN",
    "DUE",
    "END_RUN",
    "END_THREAD",
    "LOCK_THREAD",
    "ORPHANS",
    "OTHER_PENDING",
    "OWN",
    "RUN",
    "STAMP",
    "TAKE_RUN",
    "TAKE_THREAD",
    "UNFOLDED",
    "due_at_of",
]

_run, _thread, _wait, _worker = tables.run.c, tables.thread.c, tables.wait.c, tables.worker.c
_earlier = tables.run.alias("earlier")
_head = tables.run.alias("head")
#: Entries that a turn writes before it makes progress: how it began.
PROGRESS_COUNT = 2
_UNFINISHED = [RunStatus.PENDING, RunStatus.RUNNING]

#: A run by `number`, with the `thread_id` of its thread.
RUN = (
    select(tables.run, _thread.thread_id)
    .join(tables.thread, _thread.number == _run.thread)
    .where(_run.number == bindparam("run"))
)

#: Running runs on `routes` whose thread's owner has no live lease.
ORPHANS = (
    select(_run.number, _run.thread)
    .join(tables.thread, _thread.number == _run.thread)
    .where(
        _run.status == RunStatus.RUNNING,
        _run.route.in_(bindparam("routes", expanding=True)),
        or_(
            _thread.owner.is_(None),
            ~exists().where(and_(_worker.worker_id == _thread.owner, _worker.lease_until > database_now_us())),
        ),
    )
    .order_by(_run.number)
    .limit(bindparam("count_max"))
    .with_for_update(of=tables.thread, skip_locked=True)
)

#: Pending runs on `routes` that are due, on threads that nobody owns and whose earlier runs have all ended.
DUE = (
    select(_run.number, _run.thread)
    .join(tables.thread, _thread.number == _run.thread)
    .where(
        _run.status == RunStatus.PENDING,
        _run.due_at <= database_now_us(),
        _run.hidden.is_(False),
        _run.route.in_(bindparam("routes", expanding=True)),
        _thread.owner.is_(None),
        ~exists().where(
            and_(
                _earlier.c.thread == _run.thread,
                _earlier.c.number < _run.number,
                _earlier.c.status.in_(_UNFINISHED),
                _earlier.c.hidden.is_(False),
            )
        ),
    )
    .order_by(_run.stamp, _run.number)
    .limit(bindparam("count_max"))
    .with_for_update(of=tables.thread, skip_locked=True)
)

#: The lease of a thread: its fence rises.
TAKE_THREAD = (
    update(tables.thread)
    .where(_thread.number == bindparam("thread"))
    .values(
        owner=bindparam("worker_id"),
        fence=_thread.fence + 1,
        status=ThreadStatus.BUSY,
        updated_at=database_now_us(),
    )
    .returning(tables.thread)
)

#: The next place in the fair queue: after the tenant's own pending runs, and not before the head of the queue. A tenant
#: that floods the queue stands behind itself, and everybody else's first run stands beside its oldest one.
STAMP = select(
    select(func.max(_run.stamp))
    .where(_run.tenant_id == bindparam("tenant_id"), _run.status == RunStatus.PENDING)
    .scalar_subquery(),
    select(_head.c.stamp)
    .where(_head.c.status == RunStatus.PENDING, _head.c.due_at <= database_now_us())
    .order_by(_head.c.stamp)
    .limit(1)
    .scalar_subquery(),
)

#: An orphan is counted: again without progress (its journal has nothing but the last turn's beginning more), or anew.
COUNT_ORPHAN = (
    update(tables.run)
    .where(_run.number == bindparam("run"))
    .values(
        orphaned=case((bindparam("head_seq") > _run.orphan_seq + PROGRESS_COUNT, 1), else_=_run.orphaned + 1),
        orphan_seq=bindparam("head_seq"),
    )
)

#: A run begins a turn.
TAKE_RUN = (
    update(tables.run)
    .where(_run.number == bindparam("run"))
    .values(status=RunStatus.RUNNING, attempts=_run.attempts + 1, parked=None, updated_at=database_now_us())
)

#: Answers that the journal of `thread` does not have yet, in the order in which they came.
UNFOLDED = (
    select(tables.wait, _thread.thread_id)
    .join(tables.thread, _thread.number == _wait.thread)
    .where(_wait.thread == bindparam("thread"), _wait.status == "answered", _wait.folded.is_(False))
    .order_by(_wait.answered_at, _wait.wait_id)
)

#: What a run was asked to stop for.
CANCEL = select(_run.cancel).where(_run.number == bindparam("run")).with_for_update()

#: A turn lets its run go. A cancelled run is due at once: one that came while the run was being parked would
#: otherwise wait for what the run waits for.
END_RUN = (
    update(tables.run)
    .where(_run.number == bindparam("run"))
    .values(
        status=bindparam("to_status"),
        reason=bindparam("to_reason"),
        error=bindparam("to_error"),
        parked=case((_run.cancel.is_not(None), None), else_=bindparam("to_parked")),
        due_at=case((_run.cancel.is_not(None), 0), else_=bindparam("to_due_at")),
        hidden=bindparam("to_hidden"),
        updated_at=bindparam("now_us"),
    )
)

#: Whether another run of the thread is pending.
OTHER_PENDING = (
    select(_run.number)
    .where(
        _run.thread == bindparam("thread"),
        _run.number != bindparam("run"),
        _run.status == RunStatus.PENDING,
        _run.hidden.is_(False),
    )
    .limit(1)
)

#: A thread is let go.
END_THREAD = (
    update(tables.thread)
    .where(_thread.number == bindparam("thread_number"))
    .values(
        owner=None,
        status=bindparam("to_status"),
        error=bindparam("to_error"),
        updated_at=bindparam("now_us"),
        state_updated_at=bindparam("now_us"),
    )
)

#: A thread's row lock. Whoever changes runs or waits of a thread takes it first, so that no two wait for each other.
LOCK_THREAD = select(_thread.number).where(_thread.number == bindparam("thread")).with_for_update()

#: Running runs whose thread a worker owns.
OWN = (
    select(_run.number, _run.thread, _thread.fence)
    .join(tables.thread, _thread.number == _run.thread)
    .where(_run.status == RunStatus.RUNNING, _thread.owner == bindparam("worker_id"))
)

#: An unfinished run of the thread.
ACTIVE = (
    select(_run.number)
    .where(_run.thread == bindparam("thread"), _run.status.in_(_UNFINISHED), _run.hidden.is_(False))
    .limit(1)
)


def due_at_of(parked: str | None, due_at_us: int) -> int:
    """When a run that is let go is due again."""
    return FAR_US if parked == ParkReason.IN_DOUBT else due_at_us
