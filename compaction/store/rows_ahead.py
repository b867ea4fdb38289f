"""Rows of a ledger that are written before the commit of their compaction, in batches that others write between.

No reader sees them: every query asks for committed ledgers. The commit counts them, and then they are its ledger; the
next compaction or sweep removes those of a compaction that was never committed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, exists, func, insert, select, update

from threadmark.compaction import tables
from threadmark.compaction.model.records import CompactionStatus
from threadmark.compaction.store import holds, orders

__all__ = [
    "BATCH_COUNT",
    "add_ahead",
    "condemn_ahead",
    "count_rows",
    "left_ahead",
    "performed_by",
    "remove_ahead",
    "remove_condemned",
]

#: Rows that one commit writes or removes.
BATCH_COUNT = 500
_row, _compaction = tables.ledger_row.c, tables.compaction.c


def add_ahead(
    connection: Connection, compaction_id: str, holder: str, first: int, values: Sequence[Mapping[str, Any]]
) -> bool:
    """Write the rows from number `first` on, if this process performs it; False, and nothing written, otherwise."""
    after = first + len(values)
    if not orders.change(connection, compaction_id, holder, {"rows_ahead": after}):
        return False
    # A batch whose commit was not answered is written again.
    again = (_row.compaction_id == compaction_id, _row.number >= first, _row.number < after)
    connection.execute(delete(tables.ledger_row).where(*again))
    connection.execute(insert(tables.ledger_row), list(values))
    return True


def count_rows(connection: Connection, compaction_id: str) -> int:
    """How many rows are there, read by anybody or not."""
    counted = select(func.count()).select_from(tables.ledger_row).where(_row.compaction_id == compaction_id)
    return int(connection.execute(counted).scalar_one())


def left_ahead(
    connection: Connection,
    now_us: int,
    beating: holds.Beating = holds.none_beating,
    *,
    count_max: int,
    thread: int | None = None,
    mine: str | None = None,
) -> list[str]:
    """Compactions (of the thread, if one is named) with rows ahead that no live process performs, and `mine`."""
    unwanted = ~holds.is_held(connection, now_us, beating)
    statement = select(_compaction.compaction_id).where(_compaction.rows_ahead > 0)
    statement = statement.where(unwanted if mine is None else unwanted | (_compaction.compaction_id == mine))
    if thread is not None:
        statement = statement.where(_compaction.thread == thread)
    return list(connection.scalars(statement.limit(count_max)))


def remove_ahead(connection: Connection, compaction_id: str, allowed: ColumnElement[bool]) -> bool:
    """Remove some of the rows ahead, if the compaction is still as `allowed` says; whether there may be more."""
    # The lock: neither its commit nor another performer comes in between.
    still = select(_compaction.compaction_id).where(
        _compaction.compaction_id == compaction_id, _compaction.rows_ahead > 0, allowed
    )
    if connection.execute(still.with_for_update()).first() is None:
        return False
    numbers = list(
        connection.scalars(select(_row.number).where(_row.compaction_id == compaction_id).limit(BATCH_COUNT))
    )
    some = (_row.compaction_id == compaction_id, _row.number.in_(numbers))
    connection.execute(delete(tables.ledger_row).where(*some))
    if len(numbers) == BATCH_COUNT:
        return True
    connection.execute(update(tables.compaction).where(_compaction.compaction_id == compaction_id).values(rows_ahead=0))
    return False


def condemn_ahead(connection: Connection, thread: int) -> None:
    """Refuse the commits that the thread's rows ahead are for: they may have words that are erased.

    The first rows of each are removed, so its commit finds that some are missing, in any process and on any
    branch. It is made again then, and its new ledger begins with its first row.
    """
    ahead = select(_compaction.compaction_id).where(_compaction.thread == thread, _compaction.rows_ahead > 0)
    first = (_row.compaction_id.in_(ahead), _row.number < BATCH_COUNT)
    connection.execute(delete(tables.ledger_row).where(*first))


def remove_condemned(connection: Connection, thread: int) -> bool:
    """Remove some of the rows ahead that `condemn_ahead` left; whether there were any."""
    begun = exists().where(_row.compaction_id == _compaction.compaction_id, _row.number == 0)
    left = select(_compaction.compaction_id).where(_compaction.thread == thread, _compaction.rows_ahead > 0, ~begun)
    compaction_id = connection.execute(left.limit(1)).scalar_one_or_none()
    if compaction_id is None:
        return False
    # Asked again under the lock, by another statement: a new attempt at the ledger may have begun meanwhile.
    connection.execute(
        select(_compaction.compaction_id).where(_compaction.compaction_id == compaction_id).with_for_update()
    )
    remove_ahead(connection, compaction_id, ~begun)
    return True


def performed_by(holder: str) -> ColumnElement[bool]:
    """The condition that this holder performs it."""
    return (_compaction.status == CompactionStatus.SUMMARISING) & (_compaction.holder == holder)
