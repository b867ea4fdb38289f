"""The SQL of the claim and settle paths, built once: building a statement costs several times as much as running it.

Portable: the same text serves PostgreSQL and SQLite. SQLAlchemy omits FOR UPDATE SKIP LOCKED on SQLite, whose single
writer does not need it.
"""

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    String,
    and_,
    bindparam,
    case,
    exists,
    func,
    insert,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql

from threadmark.db.portable import ANSWERED, APPROVAL, OPEN, PENDING, RUNNING, greatest
from threadmark.db.prepared import Prepared
from threadmark.state import tables
from threadmark.state.entries.instants import FAR_US, database_now_us
from threadmark.state.entries.run_status import CancelAction, ParkReason, ThreadStatus

__all__ = [
    "ACTIVE",
    "CLAIMABLE",
    "COUNT_ORPHAN",
    "END_RUN",
    "END_THREAD",
    "HEAD_SEQ",
    "INSERT_RUN",
    "INSERT_RUN_AND_THREAD",
    "LOCK_THREAD",
    "OWN",
    "PROGRESS",
    "RUN",
    "SUPERSEDE",
    "due_at_of",
    "open_wait_count",
]

_run, _thread, _wait = tables.run.c, tables.thread.c, tables.wait.c
_earlier = tables.run.alias("earlier")
_head = tables.run.alias("head")
_own = tables.run.alias("own")
_other = tables.run.alias("other")
_open_waits = (
    select(literal_column("1"))
    .where(_wait.tenant_id == bindparam("tenant_id", type_=String()), _wait.status == OPEN)
    .limit(bindparam("open_waits_max", type_=BigInteger()))
    .subquery()
)
#: The number of a tenant's open questions, counted up to `open_waits_max`.
open_wait_count = select(func.count()).select_from(_open_waits).scalar_subquery()
_others = exists().where(
    and_(
        _other.c.thread == _thread.number,
        _other.c.number != bindparam("run"),
        _other.c.status == PENDING,
        _other.c.hidden.is_(False),
    )
)
_goes_on = and_(~bindparam("to_stay", type_=Boolean()), _others)
#: Entries that a turn writes before it makes progress: how it began, and what it intends to do.
_BEGINNINGS = [
    literal_column("'run_started'", String()),
    literal_column("'turn_started'", String()),
    literal_column("'step_intended'", String()),
]
_UNFINISHED = [PENDING, RUNNING]
#: Columns of a run that are NULL when it is accepted.
_UNTOUCHED = frozenset({"parked", "cancel", "reason", "error"})
#: A run by `number`, with the `thread_id` of its thread.
RUN = (
    select(tables.run, _thread.thread_id)
    .join(tables.thread, _thread.number == _run.thread)
    .where(_run.number == bindparam("run"))
)

#: Pending runs that are due, on threads without an owner and without an earlier unfinished run: only a worker is
#: missing.
CLAIMABLE = and_(
    _run.status == PENDING,
    _run.due_at <= database_now_us(),
    _run.hidden.is_(False),
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

#: The next place in the fair queue: after the tenant's own pending runs, and not before the head of the queue. A tenant
#: that floods the queue waits behind its own runs; another tenant's first run takes a place next to its oldest one.
_stamp = (
    greatest(
        func.coalesce(
            select(func.max(_own.c.stamp))
            .where(_own.c.tenant_id == bindparam("for_tenant", type_=String()), _own.c.status == PENDING)
            .scalar_subquery(),
            -1,
        ),
        func.coalesce(
            select(_head.c.stamp)
            .where(_head.c.status == PENDING, _head.c.due_at <= database_now_us())
            .order_by(_head.c.stamp)
            .limit(1)
            .scalar_subquery(),
            0,
        )
        - 1,
    )
    + 1
)
_accepted = [each for each in tables.run.c if each.name not in {"number", "thread", "stamp", *_UNTOUCHED}]

#: Insert an accepted run.
INSERT_RUN = Prepared(
    insert(tables.run).values(stamp=_stamp).returning(tables.run),
    columns=["thread", *(each.name for each in _accepted)],
)

#: Columns of a thread that are NULL in a new one.
_THREAD_EMPTY = frozenset({"number", "error", "owner"})
_new_thread = [each for each in tables.thread.c if each.name not in _THREAD_EMPTY]
_made = (
    postgresql.insert(tables.thread)
    .from_select(
        [each.name for each in _new_thread],
        select(*(bindparam(f"thread_{each.name}", type_=each.type) for each in _new_thread)).where(
            open_wait_count < bindparam("open_waits_max", type_=BigInteger())
        ),
        include_defaults=False,
    )
    .on_conflict_do_nothing()
    .returning(_thread.number)
    .cte("made")
)
_labelled = (
    insert(tables.thread_label)
    .from_select(
        ["thread", "key", "value"],
        select(
            _made.c.number,
            func.unnest(bindparam("label_keys", type_=ARRAY(String))),
            func.unnest(bindparam("label_values", type_=ARRAY(String))),
        ),
    )
    .returning(tables.thread_label.c.thread)
    .cte("labelled")
)

#: PostgreSQL: insert an accepted run and a new thread for it, with labels; no row if the id is taken or the tenant has
#: as many open questions as it may.
INSERT_RUN_AND_THREAD = Prepared(
    insert(tables.run)
    .from_select(
        ["thread", "stamp", *(each.name for each in _accepted)],
        select(_made.c.number, _stamp, *(bindparam(each.name, type_=each.type) for each in _accepted)),
        include_defaults=False,
    )
    .returning(tables.run)
    .add_cte(_labelled)
)

#: The run's thread has progressed since the run was last found without a worker.
PROGRESS = exists().where(
    and_(
        tables.entry.c.thread == _run.thread,
        tables.entry.c.seq > _run.orphan_seq,
        tables.entry.c.kind.not_in(_BEGINNINGS),
    )
)

#: The head of the run's thread.
HEAD_SEQ = select(_thread.head_seq).where(_thread.number == _run.thread).scalar_subquery()

#: Count an unfinished turn: once more without progress (the journal gained only beginnings), or as the first.
COUNT_ORPHAN = (
    update(tables.run)
    .where(_run.number == bindparam("run_number"))
    .values(
        orphaned=case((PROGRESS, 1), else_=_run.orphaned + 1),
        orphan_seq=HEAD_SEQ,
    )
    .returning(_run.orphaned)
)

#: A cancellation or an answer that the turn has not seen, because it came while the run was being parked.
_news = or_(
    _run.cancel.is_not(None),
    exists().where(and_(_wait.thread == _run.thread, _wait.status == ANSWERED, _wait.folded.is_(False))),
)

#: A turn releases its run. With unseen news the run is due at once: the sender found it running, so nothing else would
#: wake it. A run that has to roll back does not settle (no row then).
END_RUN = (
    update(tables.run)
    .where(
        _run.number == bindparam("run"),
        or_(bindparam("may_settle", type_=Boolean()), _run.cancel.is_(None), _run.cancel != CancelAction.ROLLBACK),
    )
    .values(
        status=bindparam("to_status"),
        reason=bindparam("to_reason"),
        error=bindparam("to_error"),
        parked=case((_news, None), else_=bindparam("to_parked")),
        due_at=case((_news, 0), else_=bindparam("to_due_at")),
        hidden=bindparam("to_hidden"),
        updated_at=bindparam("now_us"),
    )
)

#: Release a thread. While another run is pending it stays busy, unless it waits for a person (`to_stay`).
END_THREAD = (
    update(tables.thread)
    .where(_thread.number == bindparam("thread_number"))
    .values(
        owner=None,
        status=case((_goes_on, ThreadStatus.BUSY), else_=bindparam("to_status")),
        error=case((_goes_on, None), else_=bindparam("to_error")),
        updated_at=bindparam("now_us"),
        state_updated_at=bindparam("now_us"),
    )
)

#: The thread moves on: close its open approvals.
SUPERSEDE = Prepared(
    update(tables.wait)
    .where(_wait.thread == bindparam("thread_number"), _wait.status == OPEN, _wait.kind == APPROVAL)
    .values(status="superseded")
)

#: A thread's row lock. Every change to a thread's runs or waits takes it first, so that no two of them deadlock.
LOCK_THREAD = select(_thread.number).where(_thread.number == bindparam("thread")).with_for_update()

#: Running runs whose thread a worker owns.
OWN = (
    select(_run.number, _run.thread, _thread.fence, _thread.inbox)
    .join(tables.thread, _thread.number == _run.thread)
    .where(_run.status == RUNNING, _thread.owner == bindparam("worker_id"))
)

#: An unfinished run of the thread.
ACTIVE = Prepared(
    select(_run.number)
    .where(_run.thread == bindparam("thread"), _run.status.in_(_UNFINISHED), _run.hidden.is_(False))
    .limit(1)
)


def due_at_of(parked: str | None, due_at_us: int) -> int:
    """When a released run is due again."""
    return FAR_US if parked == ParkReason.IN_DOUBT else due_at_us
