"""Erasure in journals: what was said is taken out of an entry, and the chain still verifies.

The entry keeps its place, and in `erased` the salted digest of what it was; the salt goes, so that nobody can try words
against the digest. What stands in the payload from then on is a rest without the erased words, which still folds. It
is no copy of the truth any more, and is shown as erased.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import Connection, Table, select, update

from threadmark.state import tables
from threadmark.state.append import chain
from threadmark.state.entries.instants import database_now_us

__all__ = [
    "Erasing",
    "Rewrite",
    "erase_in_rows",
    "erase_in_thread",
    "find_thread_numbers",
    "holders",
    "threads_telling",
    "told_by",
]

#: From the kind of an entry (`run_started`, …) or the name of a column (`request`, …), its seq (0 for a row) and its
#: JSON to what may stay of it; the same object when nothing is to go.
Rewrite = Callable[[str, int, Any], Any]

_ENTRY_COUNT = 200
#: Kinds of entries in which memory speaks.
_TOLD_BY = ("recalled", "tool_returned")
_RUN_COLUMNS = ("request", "metadata", "error")
_WAIT_COLUMNS = ("arguments", "answer")
_THREAD_COLUMNS = ("metadata", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasing:
    """How far the erasure of a thread's entries is: `after_seq` is where it goes on, None at its end."""

    entry_count: int
    after_seq: int | None


def find_thread_numbers(connection: Connection, tenant_id: str, thread_ids: Sequence[str] | None = None) -> list[int]:
    """The numbers of the tenant's threads with these ids, or of all of them, in order."""
    found = select(tables.thread.c.number).where(tables.thread.c.tenant_id == tenant_id)
    if thread_ids is not None:
        found = found.where(tables.thread.c.thread_id.in_(thread_ids))
    return list(connection.scalars(found.order_by(tables.thread.c.number)))


def threads_telling(connection: Connection, tenant_id: str, tells: Callable[[bytes], bool]) -> list[int]:
    """The tenant's threads in whose journals memory told something that `tells` knows again, by number."""
    entry, thread = tables.entry.c, tables.thread.c
    rows = connection.execute(
        select(entry.thread, entry.payload)
        .join(tables.thread, thread.number == entry.thread)
        .where(thread.tenant_id == tenant_id, entry.kind.in_(_TOLD_BY), entry.payload.is_not(None))
    )
    return sorted({row.thread for row in rows.yield_per(_ENTRY_COUNT) if tells(row.payload)})


def holders(connection: Connection, threads: Sequence[int]) -> dict[int, int]:
    """The fences of those threads that a worker holds now: it may have read what is erased since."""
    thread = tables.thread.c
    held = select(thread.number, thread.fence).where(thread.number.in_(threads), thread.owner.is_not(None))
    return {row.number: row.fence for row in connection.execute(held)}


def erase_in_thread(connection: Connection, thread: int, rewrite: Rewrite, after_seq: int = 0) -> Erasing:
    """Rewrite the next few hundred entries of a thread, of all branches. Doing it again changes nothing."""
    entry = tables.entry.c
    rows = connection.execute(
        select(entry.number, entry.seq, entry.kind, entry.salt, entry.payload, entry.erased)
        .where(entry.thread == thread, entry.seq > after_seq, entry.payload.is_not(None))
        .order_by(entry.seq)
        .limit(_ENTRY_COUNT)
    ).all()
    entry_count = sum(_erase_entry(connection, row, rewrite) for row in rows)
    if entry_count:
        _tell_folds(connection, thread)
    return Erasing(entry_count=entry_count, after_seq=rows[-1].seq if len(rows) == _ENTRY_COUNT else None)


def told_by(connection: Connection, thread: int, rewrite: Rewrite) -> list[int]:
    """The seqs of the entries that `erase_in_thread` would rewrite; nothing is changed."""
    entry = tables.entry.c
    rows = connection.execute(
        select(entry.seq, entry.kind, entry.payload)
        .where(entry.thread == thread, entry.payload.is_not(None))
        .order_by(entry.seq)
    )
    seqs = []
    for row in rows.yield_per(_ENTRY_COUNT):
        document = msgspec.json.decode(row.payload)
        if rewrite(row.kind, row.seq, document) is not document:
            seqs.append(row.seq)
    return seqs


def erase_in_rows(connection: Connection, thread: int, rewrite: Rewrite) -> int:
    """Rewrite what stands about a thread outside its journal: requests, waits, metadata, kept replies."""
    runs = list(connection.scalars(select(tables.run.c.run_id).where(tables.run.c.thread == thread)))
    found = select(tables.thread.c.tenant_id, tables.thread.c.thread_id).where(tables.thread.c.number == thread)
    owner = connection.execute(found).one_or_none()
    if owner is None:
        return 0
    count = _erase_columns(connection, tables.run, "number", tables.run.c.thread == thread, _RUN_COLUMNS, rewrite)
    count += _erase_columns(connection, tables.wait, "wait_id", tables.wait.c.thread == thread, _WAIT_COLUMNS, rewrite)
    mine = tables.thread.c.number == thread
    count += _erase_columns(connection, tables.thread, "number", mine, _THREAD_COLUMNS, rewrite)
    of_runs = (tables.receipt.c.tenant_id == owner.tenant_id) & tables.receipt.c.run_id.in_(runs)
    count += _erase_columns(connection, tables.receipt, "key", of_runs, ("reply",), rewrite)
    return count + _erase_labels(connection, thread, rewrite)


def _erase_entry(connection: Connection, row: Any, rewrite: Rewrite) -> bool:
    document = msgspec.json.decode(row.payload)
    left = rewrite(row.kind, row.seq, document)
    if left is document:
        return False
    erased = row.erased if row.erased is not None else chain.payload_digest(row.salt, row.payload)
    connection.execute(
        update(tables.entry)
        .where(tables.entry.c.number == row.number)
        .values(payload=msgspec.json.encode(left), erased=erased, salt=None)
    )
    return True


def _tell_folds(connection: Connection, thread: int) -> None:
    """In the transaction of the erasure: no process goes on from a fold that has the words."""
    moved = tables.thread.c.number == thread
    connection.execute(update(tables.thread).where(moved).values(erasures=tables.thread.c.erasures + 1))


def _erase_columns(
    connection: Connection, table: Table, key: str, where: Any, names: Sequence[str], rewrite: Rewrite
) -> int:
    count = 0
    for row in connection.execute(select(table).where(where)).mappings().all():
        left = {name: _rest(name, row[name], rewrite) for name in names if row[name] is not None}
        changed = {name: value for name, value in left.items() if value is not row[name]}
        if changed:
            same = where & (table.c[key] == row[key])
            connection.execute(update(table).where(same).values(changed))
            count += 1
    return count


def _rest(name: str, stored: str | bytes, rewrite: Rewrite) -> str | bytes:
    document = msgspec.json.decode(stored)
    left = rewrite(name, 0, document)
    if left is document:
        return stored
    written = msgspec.json.encode(left)
    return written if isinstance(stored, bytes) else written.decode()


def _erase_labels(connection: Connection, thread: int, rewrite: Rewrite) -> int:
    label = tables.thread_label.c
    count = 0
    for row in connection.execute(select(tables.thread_label).where(label.thread == thread)).all():
        left = _rest("label", row.value, rewrite)
        if left is not row.value:
            mine = (label.thread == thread) & (label.key == row.key)
            connection.execute(update(tables.thread_label).where(mine).values(value=left))
            count += 1
    if count:
        moved = tables.thread.c.number == thread
        connection.execute(update(tables.thread).where(moved).values(updated_at=database_now_us()))
    return count
