"""Retention of words in ledgers: after some days a row's words are a digest, and the account stands as it did."""

from sqlalchemy import Connection

from threadmark.compaction.ledger import hash_rows
from threadmark.compaction.store import ledger_rows, orders

__all__ = ["hash_words"]


def hash_words(connection: Connection, before_us: int, now_us: int, count_max: int) -> int:
    """Have the ledgers that were committed before then keep digests alone; how many did. Repeatable.

    Rows keep their names, statuses, places and salts: ledgers verify against the journal, which still has the words.
    """
    due = orders.with_words(connection, before_us, count_max)
    for compaction_id in due:
        kept = ledger_rows.read_rows(connection, compaction_id)
        ledger_rows.put_rows(connection, compaction_id, dict(enumerate(hash_rows(kept))))
        orders.note_words_gone(connection, compaction_id, now_us)
    return len(due)
