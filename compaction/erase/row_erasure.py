"""Rows of ledgers without words that were erased, in batches; the counts of a compaction follow with each of them."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from sqlalchemy import Connection, select, update

from threadmark.compaction import tables
from threadmark.compaction.ledger import Row, Status, erase_rows
from threadmark.compaction.store import ledger_rows, recalls
from threadmark.state import Database
from threadmark.state.threads.thread_numbers import lock_number

__all__ = ["erase_ledger"]

#: Rows that one commit changes.
ROW_COUNT = 200
_TOTALS = msgspec.json.Decoder(dict[str, dict[str, int]])
_column = tables.compaction.c


async def erase_ledger(database: Database, thread: int, compaction_id: str, erased: frozenset[int]) -> int:
    """Empty the rows of a committed ledger that only the erased entries (by `seq`) said; how many. Repeatable."""
    numbers = await database.read(partial(_to_erase, compaction_id=compaction_id, erased=erased))
    count = 0
    for start in range(0, len(numbers), ROW_COUNT):
        some = partial(_erase_some, thread=thread, compaction_id=compaction_id, erased=erased)
        count += await database.write(partial(some, numbers=numbers[start : start + ROW_COUNT]), repeatable=True)
    return count


def _to_erase(connection: Connection, compaction_id: str, erased: frozenset[int]) -> list[int]:
    before = ledger_rows.read_rows(connection, compaction_id)
    after = erase_rows(before, erased)
    return [number for number, (old, new) in enumerate(zip(before, after, strict=True)) if old is not new]


def _erase_some(
    connection: Connection, thread: int, compaction_id: str, erased: frozenset[int], numbers: Sequence[int]
) -> int:
    # Locked: two erasures, or one and the retention of words, would each write what they read before the other.
    if lock_number(connection, thread) is None:
        return 0
    before = ledger_rows.rows_numbered(connection, compaction_id, numbers)
    after = dict(zip(before, erase_rows(before.values(), erased), strict=True))
    changed = {number: row for number, row in after.items() if row is not before[number]}
    if changed:
        # By the names that they had: an erased row is named by its digest.
        recalls.forget_recalls(connection, compaction_id, [before[number].row_id for number in changed])
        ledger_rows.put_rows(connection, compaction_id, changed)
        _count(connection, compaction_id, [before[number] for number in changed])
    return len(changed)


def _count(connection: Connection, compaction_id: str, gone: Sequence[Row]) -> None:
    """Move the rows, as they were, to the count of erased ones."""
    stored = connection.execute(
        select(_column.totals, _column.critical_dropped).where(_column.compaction_id == compaction_id)
    ).one()
    critical_count = sum(row.critical for row in gone if row.status is Status.DROPPED)
    values: dict[str, Any] = {"critical_dropped": stored.critical_dropped - critical_count}
    if stored.totals is not None:
        values["totals"] = msgspec.json.encode(_moved(_TOTALS.decode(stored.totals), gone))
    connection.execute(update(tables.compaction).where(_column.compaction_id == compaction_id).values(values))


def _moved(totals: Mapping[str, Mapping[str, int]], gone: Sequence[Row]) -> dict[str, dict[str, int]]:
    moved = {unit: dict(counts) for unit, counts in totals.items()}
    for row in gone:
        counts = moved.setdefault(str(row.unit), {})
        for status, change in ((row.status, -1), (Status.ERASED, 1)):
            counts[str(status)] = counts.get(str(status), 0) + change
    return {
        unit: {name: count for name, count in counts.items() if count or name == "total"}
        for unit, counts in moved.items()
    }
