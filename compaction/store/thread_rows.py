"""What compaction has about a thread, when the thread is deleted: what finds it at once, its rows in batches."""

from sqlalchemy import Connection, delete

from threadmark.compaction import tables
from threadmark.db.removal import RemovalBatch

__all__ = ["forget_thread", "remove_thread_rows"]

#: Without these no search finds a row of its ledgers, no process performs its compactions or delivers its statements,
#: and a new thread of that name has them anew. There are few of them for a compaction.
_FIRST = (tables.compaction, tables.current_view, tables.outlook, tables.promotion)
_LATER = (tables.reply, tables.analysis, tables.ledger_row, tables.segment, tables.view, tables.erasure, tables.recall)


def forget_thread(connection: Connection, thread: int) -> None:
    """Hide all that compaction has about a thread (its number), in the unit that deletes the thread."""
    for table in _FIRST:
        connection.execute(delete(table).where(table.c.thread == thread))


def remove_thread_rows(connection: Connection, thread: int, batch: RemovalBatch) -> bool:
    """Remove what is left of a deleted thread, as far as the batch allows; returns whether none is left."""
    return all(batch.remove(connection, table, table.c.thread == thread) for table in (*_FIRST, *_LATER))
