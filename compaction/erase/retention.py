"""Retention of words in ledgers: after some days a row's words are a digest, and the account stands as it did."""

from functools import partial

from sqlalchemy import Connection

from threadmark.compaction.ledger import hash_rows
from threadmark.compaction.model.records import DropFilter
from threadmark.compaction.store import ledger_rows, orders
from threadmark.state import Database
from threadmark.state.threads.thread_numbers import lock_number

__all__ = ["hash_words"]

#: Rows that one commit changes.
ROW_COUNT = 200
_EVERY_ROW = DropFilter(statuses=())


async def hash_words(database: Database, before_us: int, now_us: int, count_max: int) -> int:
    """Have the ledgers that were committed before then keep digests alone; how many did. Repeatable.

    In batches: a ledger of which some rows have their words verifies too, and is gone on with. Rows keep their names,
    statuses, places and salts: ledgers verify against the journal, which still has the words.
    """
    due = await database.read(partial(orders.with_words, before_us=before_us, count_max=count_max))
    for compaction_id in due:
        after: int | None = -1
        while after is not None:
            some = partial(_hash_some, compaction_id=compaction_id, after=after, now_us=now_us)
            after = await database.write(some, repeatable=True)
    return len(due)


def _hash_some(connection: Connection, compaction_id: str, after: int, now_us: int) -> int | None:
    """Hash the rows behind a number; the number behind which to go on."""
    done = orders.find_compaction(connection, compaction_id)
    # Locked: an erasure that comes between the reading and the writing would be written over.
    if done is None or lock_number(connection, done.thread) is None:
        return None
    page = ledger_rows.page_of_rows(connection, compaction_id, _EVERY_ROW, after=after, count_max=ROW_COUNT)
    hashed = zip(page, hash_rows(drop.row for drop in page), strict=True)
    changed = {drop.number: row for drop, row in hashed if row is not drop.row}
    ledger_rows.put_rows(connection, compaction_id, changed)
    if len(page) == ROW_COUNT:
        return page[-1].number
    orders.note_words_gone(connection, compaction_id, now_us)
    return None
