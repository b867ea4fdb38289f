"""The log of recalls: dropped units that were requested again."""

from collections.abc import Collection
from typing import Literal

import msgspec
from sqlalchemy import Connection, and_, delete, func, or_, select

from threadmark.compaction import tables
from threadmark.compaction.store.ledger_rows import drop_id_of
from threadmark.db.portable import insert_new

__all__ = ["DropRecall", "How", "add_recall", "forget_recalls", "list_recalls", "recalled_often"]

How = Literal["agent", "opened", "restored"]
_column = tables.recall.c


class DropRecall(msgspec.Struct, frozen=True, kw_only=True):
    """One recall. `key` and `at_us` are its place in the log."""

    key: str
    drop_id: str
    how: str
    requested_by: str
    at_us: int


def add_recall(
    connection: Connection, key: str, thread: int, drop_id: str, how: How, requested_by: str, now_us: int
) -> None:
    """Note a recall, once for its key."""
    compaction_id, _, row_id = drop_id.rpartition(".")
    insert_new(
        connection,
        tables.recall,
        {
            "key": key,
            "thread": thread,
            "compaction_id": compaction_id,
            "row_id": row_id,
            "how": how,
            "requested_by": requested_by,
            "at": now_us,
        },
    )


def list_recalls(
    connection: Connection, thread: int, *, before: tuple[int, str] | None, count_max: int
) -> list[DropRecall]:
    """Recalls in the thread, newest first; those before a place."""
    statement = select(tables.recall).where(_column.thread == thread)
    if before is not None:
        at, key = before
        statement = statement.where(or_(_column.at < at, and_(_column.at == at, _column.key < key)))
    rows = connection.execute(statement.order_by(_column.at.desc(), _column.key.desc()).limit(count_max))
    return [
        DropRecall(
            key=row.key,
            drop_id=drop_id_of(row.compaction_id, row.row_id),
            how=row.how,
            requested_by=row.requested_by,
            at_us=row.at,
        )
        for row in rows
    ]


def recalled_often(connection: Connection, thread: int, count_min: int, count_max: int) -> list[tuple[str, int, int]]:
    """Units that were asked for at least so often: the newest drop of each, how often, and when last; most first.

    A unit has one name over all ledgers of its thread.
    """
    count, last = func.count(), func.max(_column.at)
    statement = (
        select(func.max(_column.compaction_id), _column.row_id, count, last)
        .where(_column.thread == thread)
        .group_by(_column.row_id)
        .having(count >= count_min)
        .order_by(count.desc(), last.desc(), _column.row_id)
        .limit(count_max)
    )
    return [(drop_id_of(row[0], row[1]), row[2], row[3]) for row in connection.execute(statement)]


def forget_recalls(connection: Connection, compaction_id: str, row_ids: Collection[str]) -> None:
    """Take recalls of units whose sources are erased out of the log."""
    connection.execute(
        delete(tables.recall).where(_column.compaction_id == compaction_id, _column.row_id.in_(list(row_ids)))
    )
