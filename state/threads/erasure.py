"""Erasure in journals: content is removed from an entry, and the chain still verifies.

The entry keeps its place, and `erased` holds the salted digest of the original. The salt is deleted, so no reader can
test guesses against the digest. The payload keeps what remains without the erased text, which still folds. It is no
longer the original and is shown as erased.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Connection, RowMapping, Table, select, update

from threadmark.state import tables
from threadmark.state.entries import chain
from threadmark.state.entries.instants import database_now_us

__all__ = [
    "Erasing",
    "ErasingRows",
    "Rewrite",
    "RowPlace",
    "erase_in_rows",
    "erase_in_thread",
    "find_thread_numbers",
    "holders",
    "threads_telling",
    "told_by",
]

#: Maps the kind of an entry (`run_started`, …) or the name of a column (`request`, …), its seq (0 for a row) and its
#: JSON to what may remain; returns the same object if nothing is to be erased.
Rewrite = Callable[[str, int, Any], Any]

_ENTRY_COUNT = 200
#: Rows that one commit looks at.
_ROW_COUNT = 200
#: Kinds of entries that contain text from memory.
_TOLD_BY = ("recalled", "tool_returned")
_RUN_COLUMNS = ("request", "metadata", "error")
_WAIT_COLUMNS = ("arguments", "answer")
_THREAD_COLUMNS = ("metadata", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasing:
    """Progress of the erasure of a thread's entries: continue with `after_seq`; None means that it is done."""

    entry_count: int
    after_seq: int | None


class RowPlace(NamedTuple):
    """Where an erasure in rows goes on: behind the row with this key, of the tables in their order."""

    kind: int
    key: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasingRows:
    """Progress of the erasure in rows about a thread: continue with `after`; None means that it is done."""

    row_count: int
    after: RowPlace | None


def find_thread_numbers(connection: Connection, tenant_id: str, thread_ids: Sequence[str] | None = None) -> list[int]:
    """The numbers of the tenant's threads with these ids, or of all its threads, in order."""
    found = select(tables.thread.c.number).where(tables.thread.c.tenant_id == tenant_id)
    if thread_ids is not None:
        found = found.where(tables.thread.c.thread_id.in_(thread_ids))
    return list(connection.scalars(found.order_by(tables.thread.c.number)))


def threads_telling(connection: Connection, tenant_id: str, tells: Callable[[bytes], bool]) -> list[int]:
    """The numbers of the tenant's threads whose journals contain text from memory that `tells` recognises."""
    entry, thread = tables.entry.c, tables.thread.c
    rows = connection.execute(
        select(entry.thread, entry.payload)
        .join(tables.thread, thread.number == entry.thread)
        .where(thread.tenant_id == tenant_id, entry.kind.in_(_TOLD_BY), entry.payload.is_not(None))
    )
    return sorted({row.thread for row in rows.yield_per(_ENTRY_COUNT) if tells(row.payload)})


def holders(connection: Connection, threads: Sequence[int]) -> dict[int, int]:
    """The fences of those threads that a worker holds now, which may have read text that was erased since."""
    thread = tables.thread.c
    held = select(thread.number, thread.fence).where(thread.number.in_(threads), thread.owner.is_not(None))
    return {row.number: row.fence for row in connection.execute(held)}


def erase_in_thread(connection: Connection, thread: int, rewrite: Rewrite, after_seq: int = 0) -> Erasing:
    """Rewrite the next few hundred entries of a thread, on all branches. Repeating it has no further effect."""
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
    """The seqs of the entries that `erase_in_thread` would rewrite; changes nothing."""
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


def erase_in_rows(connection: Connection, thread: int, rewrite: Rewrite, after: RowPlace | None = None) -> ErasingRows:
    """Rewrite the next few hundred rows about a thread outside its journal: requests, waits, stored replies; at last
    its metadata. Repeating it has no further effect.
    """
    found = select(tables.thread.c.tenant_id).where(tables.thread.c.number == thread)
    tenant_id = connection.execute(found).scalar_one_or_none()
    if tenant_id is None:
        return ErasingRows(row_count=0, after=None)
    count, left = 0, _ROW_COUNT
    place = after or RowPlace(0, None)
    kinds = _row_kinds(thread, tenant_id)
    while place.kind < len(kinds):
        kind = kinds[place.kind]
        key = kind.table.c[kind.key]
        rows = select(kind.table).where(kind.where).order_by(key).limit(left)
        page = connection.execute(rows if place.key is None else rows.where(key > place.key)).mappings().all()
        count += sum(_erase_columns(connection, kind, row, rewrite) for row in page)
        left -= len(page)
        if not left:
            return ErasingRows(row_count=count, after=RowPlace(place.kind, page[-1][kind.key]))
        place = RowPlace(place.kind + 1, None)
    return ErasingRows(row_count=count + _erase_labels(connection, thread, rewrite), after=None)


@dataclass(frozen=True, slots=True)
class _RowKind:
    """Rows of a table that tell of a thread, and their columns with words."""

    table: Table
    key: str
    where: ColumnElement[bool]
    names: Sequence[str]


def _row_kinds(thread: int, tenant_id: str) -> tuple[_RowKind, ...]:
    run, wait, receipt = tables.run.c, tables.wait.c, tables.receipt.c
    runs = select(run.run_id).where(run.thread == thread)
    of_runs = (receipt.tenant_id == tenant_id) & receipt.run_id.in_(runs)
    return (
        _RowKind(tables.run, "number", run.thread == thread, _RUN_COLUMNS),
        _RowKind(tables.wait, "wait_id", wait.thread == thread, _WAIT_COLUMNS),
        _RowKind(tables.receipt, "key", of_runs, ("reply",)),
        _RowKind(tables.thread, "number", tables.thread.c.number == thread, _THREAD_COLUMNS),
    )


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
    """Invalidate every cached fold of the thread, in the transaction of the erasure."""
    moved = tables.thread.c.number == thread
    connection.execute(update(tables.thread).where(moved).values(erasures=tables.thread.c.erasures + 1))


def _erase_columns(connection: Connection, kind: _RowKind, row: RowMapping, rewrite: Rewrite) -> int:
    left = {name: _rest(name, row[name], rewrite) for name in kind.names if row[name] is not None}
    changed = {name: value for name, value in left.items() if value is not row[name]}
    if not changed:
        return 0
    same = kind.where & (kind.table.c[kind.key] == row[kind.key])
    connection.execute(update(kind.table).where(same).values(changed))
    return 1


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
