"""Who performs a compaction, and when another may take it."""

from collections.abc import Callable, Iterable

from sqlalchemy import ColumnElement, Connection, and_, or_, select, update

from threadmark.compaction import tables
from threadmark.compaction.model.records import OPEN, Compaction, CompactionStatus
from threadmark.compaction.store.orders import compaction_of
from threadmark.state import has_lease

__all__ = ["Beating", "hold", "is_held", "none_beating", "open_compactions"]

_column = tables.compaction.c
#: Of these workers, those that can be counted on though their leases have ended (`Liveness.beating`).
Beating = Callable[[Iterable[str]], list[str]]
#: Held in the name of a worker that has no lease any more.
_is_left = and_(_column.worker_id.is_not(None), ~has_lease(_column.worker_id))


def none_beating(_: Iterable[str]) -> list[str]:
    """Workers are judged by their leases alone."""
    return []


def open_compactions(
    connection: Connection, now_us: int, count_max: int, beating: Beating = none_beating
) -> list[Compaction]:
    """Compactions that wait for a process, or whose process died or let its hold end."""
    statement = (
        select(tables.compaction)
        .where(_column.status.in_(sorted(OPEN)), ~is_held(connection, now_us, beating))
        .order_by(_column.held_until)
        .limit(count_max)
    )
    return [compaction_of(row) for row in connection.execute(statement)]


def is_held(connection: Connection, now_us: int, beating: Beating = none_beating) -> ColumnElement[bool]:
    """The condition that a live process performs a compaction.

    A worker without a lease is dead unless it can be counted on: one that waits for SQLite's write lock cannot renew.
    """
    left = select(_column.worker_id).where(_column.status == CompactionStatus.SUMMARISING, _is_left).distinct()
    late = [each for each in connection.scalars(left) if each is not None]
    living = beating(late) if late else []
    return and_(
        _column.status == CompactionStatus.SUMMARISING,
        _column.held_until >= now_us,
        or_(~_is_left, _column.worker_id.in_(living)),
    )


def hold(
    connection: Connection,
    compaction_id: str,
    holder: str,
    worker_id: str | None,
    now_us: int,
    until_us: int,
    beating: Beating = none_beating,
) -> Compaction | None:
    """Take the compaction to perform it; None when it is done, or another process holds it.

    A hold ends with its time, and at once when the worker that it belongs to is known to be dead.
    """
    left = select(_column.holder, _column.worker_id).where(_column.compaction_id == compaction_id, _is_left)
    late = connection.execute(left).one_or_none()
    # The dead holder is named: a process that takes it in this moment has another name, and keeps it.
    dead = None if late is None or beating([late.worker_id]) else late.holder
    free = or_(
        _column.status == CompactionStatus.PLANNED, _column.held_until < now_us, _column.holder.in_([holder, dead])
    )
    taken = connection.execute(
        update(tables.compaction)
        .where(_column.compaction_id == compaction_id, _column.status.in_(sorted(OPEN)), free)
        .values(
            status=CompactionStatus.SUMMARISING,
            holder=holder,
            worker_id=worker_id,
            held_until=until_us,
            attempts=_column.attempts + 1,
            updated_at=now_us,
        )
        .returning(tables.compaction)
    ).one_or_none()
    return None if taken is None else compaction_of(taken)
