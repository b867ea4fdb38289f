"""The SQL of a claim. On PostgreSQL a claim is one statement; on SQLite, where writers run one at a time, it is
several.

Portable: the same text serves PostgreSQL and SQLite. SQLAlchemy omits FOR UPDATE SKIP LOCKED on SQLite, whose single
writer does not need it.
"""

from typing import Any

from sqlalchemy import (
    ARRAY,
    CTE,
    BigInteger,
    Boolean,
    ColumnElement,
    SelectBase,
    String,
    and_,
    any_,
    bindparam,
    case,
    exists,
    func,
    literal_column,
    or_,
    select,
    update,
)

from threadmark.db.portable import ANSWERED, RUNNING, any_of
from threadmark.db.prepared import Prepared
from threadmark.state import tables
from threadmark.state.entries.instants import database_now_us
from threadmark.state.entries.run_status import RunStatus, ThreadStatus
from threadmark.state.statements import CLAIMABLE, HEAD_SEQ, PROGRESS

__all__ = [
    "CLAIM",
    "CLAIM_RUN",
    "CLAIM_SUSPECT",
    "DUE",
    "DUE_RUN",
    "LOOK_FOR_SUSPECTS",
    "ORPHANS",
    "SUSPECTS",
    "SUSPECT_DEATH_COUNT",
    "TAKE_RUNS",
    "TAKE_THREADS",
    "UNFOLDED",
]

#: A run whose worker dies once more after this many deaths in a row is a suspect: the next worker that takes it takes
#: nothing else. A lower number would be too slow: workers die for many reasons, and suspects are taken one at a time.
SUSPECT_DEATH_COUNT = 2

_run, _thread, _wait, _worker = tables.run.c, tables.thread.c, tables.wait.c, tables.worker.c
_routes, _worker_id = bindparam("routes", type_=ARRAY(String)), bindparam("worker_id", type_=String())
_count_max = bindparam("count_max", type_=BigInteger())
_takes_thread: dict[str, Any] = {
    "owner": _worker_id,
    "fence": _thread.fence + 1,
    "status": ThreadStatus.BUSY,
    "updated_at": database_now_us(),
}
_begins_turn: dict[str, Any] = {
    "status": RunStatus.RUNNING,
    "attempts": _run.attempts + 1,
    "parked": None,
    "updated_at": database_now_us(),
}
#: What a claim locks. Runs as well as threads: PostgreSQL re-evaluates only the rows that it locks, so a run that
#: another worker claimed and settled between the snapshot and the lock of its thread would be taken as the snapshot
#: shows it.
_TAKEN = (tables.thread, tables.run)

_is_suspect = and_(_run.orphaned >= SUSPECT_DEATH_COUNT, ~PROGRESS)
_found = (
    select(_run.number, _run.thread)
    .join(tables.thread, _thread.number == _run.thread)
    .where(
        _run.status == RUNNING,
        any_of(_run.route, _routes),
        or_(
            _thread.owner.is_(None),
            ~exists().where(and_(_worker.worker_id == _thread.owner, _worker.lease_until > database_now_us())),
        ),
    )
)
_orphans = _found.order_by(_run.number).with_for_update(of=_TAKEN, skip_locked=True)
_suspects = _orphans.where(_is_suspect)
_of_all = _orphans.where(or_(bindparam("with_suspects", type_=Boolean()), ~_is_suspect))
_due = (
    select(_run.number, _run.thread)
    .join(tables.thread, _thread.number == _run.thread)
    .where(CLAIMABLE, any_of(_run.route, _routes))
    .order_by(_run.stamp, _run.number)
    .with_for_update(of=_TAKEN, skip_locked=True)
)
_due_run = _due.where(_run.run_id == bindparam("run_id"))


def _claim(orphan: CTE, due: CTE) -> Prepared:
    """Claim these (number, thread) pairs; returns their runs and threads, whether each was an orphan, and whether its
    journal may lack answers.

    A claim's snapshot is older than its locks, so it misses an answer that came in between. Answers belong to
    questions, and only turns ask questions. If the snapshot has no question of the thread, and the thread's fence is
    the one before this claim's, there is no answer. Otherwise the next statement has to read the answers.
    """
    thread, run = tables.thread, tables.run
    was_orphan = _is_one_of(_run.number, select(orphan.c.number))
    held = (
        update(thread)
        .where(_is_one_of(_thread.number, select(orphan.c.thread).union_all(select(due.c.thread))))
        .values(_takes_thread)
        .returning(thread)
        .cte("held")
    )
    counts = {
        "orphaned": case((was_orphan, case((PROGRESS, 1), else_=_run.orphaned + 1)), else_=_run.orphaned),
        "orphan_seq": case((was_orphan, HEAD_SEQ), else_=_run.orphan_seq),
    }
    taken = (
        update(run)
        .where(_is_one_of(_run.number, select(orphan.c.number).union_all(select(due.c.number))))
        .values(_begins_turn | counts)
        .returning(run, was_orphan.label("was_orphan"))
        .cte("taken")
    )
    before = thread.alias("before")
    return Prepared(
        select(
            # Not column by column: the driver does not prepare statements of more than 4,096 characters.
            literal_column("taken.*"),
            literal_column("held.*"),
            or_(before.c.fence != held.c.fence - 1, exists().where(_wait.thread == held.c.number)).label("may_lack"),
        )
        .select_from(taken)
        .join(held, held.c.number == taken.c.thread)
        .join(before, before.c.number == held.c.number)
        .order_by(taken.c.was_orphan.desc(), case((taken.c.was_orphan, 0), else_=taken.c.stamp), taken.c.number)
    )


def _is_one_of(column: ColumnElement[Any], chosen: SelectBase) -> ColumnElement[bool]:
    """Whether a column is one of those chosen. Uses an array: in a generic plan PostgreSQL assumes that a subquery is
    large, chooses a join, and reads the whole table.
    """
    return column == any_(func.array(chosen.scalar_subquery(), type_=ARRAY(BigInteger)))


_orphan = _of_all.limit(bindparam("orphan_count_max", type_=BigInteger())).cte("orphan")

#: PostgreSQL: claim up to `count_max` runs, orphans first, and of those up to `orphan_count_max`.
CLAIM = _claim(_orphan, _due.limit(_count_max - select(func.count()).select_from(_orphan).scalar_subquery()).cte("due"))

#: PostgreSQL: claim the run with this id, if it is due.
CLAIM_RUN = _claim(_orphans.limit(0).cte("orphan"), _due_run.limit(_count_max).cte("due"))

#: PostgreSQL: claim a suspect.
CLAIM_SUSPECT = _claim(_suspects.limit(1).cte("orphan"), _due.limit(0).cte("due"))

#: Running runs on `routes` whose thread's owner has no live lease; the same for suspects.
ORPHANS = Prepared(_of_all.limit(_count_max))
SUSPECTS = Prepared(_suspects.limit(_count_max))

_mine = tables.thread.alias("mine")
_theirs = tables.thread.alias("theirs")
_my_count = select(func.count()).where(_mine.c.owner == _worker_id).scalar_subquery()
_their_count = (
    select(func.count()).where(_theirs.c.owner == _worker.worker_id).correlate(tables.worker).scalar_subquery()
)
_is_freer = or_(_their_count < _my_count, and_(_their_count == _my_count, _worker.worker_id < _worker_id))

#: Whether a suspect is waiting, and whether no live worker holds fewer threads than this one.
LOOK_FOR_SUSPECTS = Prepared(
    select(
        _found.where(_is_suspect).exists().label("waits"),
        (~exists().where(_worker.worker_id != _worker_id, _worker.lease_until > database_now_us(), _is_freer)).label(
            "is_freest"
        ),
    )
)

#: Pending runs on `routes` that are due; the same for the run with this id.
DUE = Prepared(_due.limit(_count_max))
DUE_RUN = Prepared(_due_run.limit(_count_max))

#: Lease the threads, which raises their fences.
TAKE_THREADS = Prepared(
    update(tables.thread)
    .where(any_of(_thread.number, bindparam("threads", type_=ARRAY(BigInteger))))
    .values(_takes_thread)
    .returning(tables.thread)
)

#: Begin a turn of the runs.
TAKE_RUNS = Prepared(
    update(tables.run)
    .where(any_of(_run.number, bindparam("runs", type_=ARRAY(BigInteger))))
    .values(_begins_turn)
    .returning(tables.run)
)

#: Answers that the journals of `threads` lack, in the order in which they were given.
UNFOLDED = Prepared(
    select(tables.wait)
    .where(
        any_of(_wait.thread, bindparam("threads", type_=ARRAY(BigInteger))),
        _wait.status == ANSWERED,
        _wait.folded.is_(False),
    )
    .order_by(_wait.answered_at, _wait.wait_id)
)
