"""The journal of a thread: appended by the holder of its lease, readable by everyone.

The holder keeps the head of the chain in memory and queues entries with `append`; `flush` writes all queued entries
in one commit. The result of one step and the intent of the next are therefore written together, and only an entry
that must precede an effect waits for the disk.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, select

from threadmark.state import tables
from threadmark.state.append.run_changes import RunChanges, apply_run_changes, refuse_stale
from threadmark.state.batches.append_batch import Append
from threadmark.state.database import Database
from threadmark.state.entries import chain
from threadmark.state.entries.entry import Entry, Recorded, decode, encode, kind_of
from threadmark.state.entries.lineage import Leave
from threadmark.state.errors import JournalDamaged, LeaseLost, Overtaken
from threadmark.state.fold.fold_cache import FoldCache, Folded, empty_fold, fold_thread
from threadmark.state.records import Thread

__all__ = ["Damage", "Journal", "JournalWriter", "Sealed", "read_entries", "read_leaves", "seal"]

_COLUMNS = (
    tables.entry.c.seq,
    tables.entry.c.branch,
    tables.entry.c.run,
    tables.entry.c.fence,
    tables.entry.c.at,
    tables.entry.c.kind,
    tables.entry.c.payload,
)


@dataclass(frozen=True, slots=True)
class Sealed:
    """A row of the entry table, chained to the one before it."""

    row: tuple[Any, ...]
    digest: bytes
    payload: bytes


def seal(thread: int, thread_id: str, previous: bytes, recorded: Recorded) -> Sealed:
    """The stored form of an entry: its payload, its salt, and the digest that covers it and everything before it."""
    payload, salt = encode(recorded.entry), os.urandom(chain.SALT_BYTES)
    digest = chain.link(
        previous,
        thread_id=thread_id,
        seq=recorded.seq,
        branch=recorded.branch,
        run=recorded.run,
        fence=recorded.fence,
        at_us=recorded.at_us,
        kind=recorded.kind,
        payload=chain.payload_digest(salt, payload),
    )
    row = (
        thread,
        recorded.seq,
        recorded.branch,
        recorded.run,
        recorded.fence,
        recorded.at_us,
        recorded.kind,
        salt,
        payload,
        digest,
    )
    return Sealed(row, digest, payload)


class JournalWriter:
    """The lease holder's writer: during a lease, the thread's journal is written only through it.

    It lives as long as one lease. After LeaseLost it refuses every write.
    """

    def __init__(self, database: Database, thread: Thread, *, run: int, now_us: Callable[[], int]) -> None:
        self._database = database
        self._thread = thread
        self._run = run
        self._now_us = now_us
        self._digest = thread.head_digest
        self._seq = self._flushed_seq = thread.head_seq
        self._pending: list[tuple[Any, ...]] = []
        self.byte_count = 0  #: bytes of the payloads queued
        self.branch = thread.branch
        self.inbox = thread.inbox

    @property
    def seq(self) -> int:
        """The seq of the last entry queued."""
        return self._seq

    @property
    def digest(self) -> bytes:
        """The digest of the last entry queued."""
        return self._digest

    @property
    def flushed_seq(self) -> int:
        """The seq of the last entry that is on disk or being written."""
        return self._flushed_seq

    @property
    def fence(self) -> int:
        """The fence of this lease."""
        return self._thread.fence

    def turn_to(self, branch: int) -> None:
        """Queue later entries on another branch; the flush that carries the first of them also creates the fork."""
        self.branch = branch

    def append(self, entry: Entry) -> Recorded:
        """Place the entry in the journal and return it; it is durable after the next flush."""
        self._seq += 1
        recorded = Recorded(
            self._seq, self.branch, self._run, self._thread.fence, self._now_us(), kind_of(entry), entry
        )
        sealed = seal(self._thread.number, self._thread.thread_id, self._digest, recorded)
        self._digest = sealed.digest
        self._pending.append(sealed.row)
        self.byte_count += len(sealed.payload)
        return recorded

    async def flush(self, move: RunChanges | None = None) -> None:
        """Write the queued entries and the related row changes to disk in one commit.

        Raises LeaseLost (or ThreadGone) if another worker holds the thread now, and Overtaken if the run may not end
        like this. Nothing is written then; after Overtaken the queued entries are written by the next flush.
        """
        if not self._pending and move is None:
            return
        append = Append(
            self._thread.number,
            self._thread.fence,
            self._flushed_seq,
            self._seq,
            self._digest,
            self._pending,
            None if move is None else move.end_alone(self._run, self._now_us()),
        )
        pending, flushed_seq = self._pending, self._flushed_seq
        self._pending, self._flushed_seq = [], self._seq
        try:
            self.inbox = await self._append(append, move)
        except Overtaken:
            self._pending, self._flushed_seq = pending, flushed_seq
            raise

    async def _append(self, append: Append, move: RunChanges | None) -> int:
        if move is not None and append.end is None:
            return await self._database.write(
                lambda connection: apply_run_changes(connection, self._thread, append, move, self._run, self._now_us()),
                thread=self._thread.number,
                repeatable=bool(append.rows),
            )
        inbox = await self._database.append(append)
        if inbox is None:
            await self._database.read(lambda connection: refuse_stale(connection, self._thread))
            raise LeaseLost(self._thread.thread_id, self._thread.fence)
        return inbox


@dataclass(frozen=True, slots=True)
class Damage:
    """Where a chain breaks, and how."""

    seq: int
    why: str


class Journal:
    """Reads journals and caches their folds."""

    def __init__(self, database: Database, fold_cache: FoldCache | None = None) -> None:
        self._database = database
        self.fold_cache = FoldCache() if fold_cache is None else fold_cache

    async def read(self, thread: int, *, after_seq: int = 0, count_max: int | None = None) -> list[Recorded]:
        """Entries of all branches after `after_seq`, in order: one query, whatever the length."""
        return await self._database.read(lambda connection: read_entries(connection, thread, after_seq, count_max))

    async def fold(self, thread: Thread) -> Folded:
        """The thread's journal folded up to the head that its row names; the caller may advance the result.

        Needs no query if the cached fold is current or the journal is empty; otherwise one query reads the new entries,
        or all of them.
        """
        if thread.head_seq == 0:
            return empty_fold(thread)
        kept = self.fold_cache.find(thread)
        if kept is not None and kept.is_of(thread):
            return kept
        return await self._database.read(lambda connection: fold_thread(connection, thread, kept))

    async def read_leaves(self, thread: int) -> dict[int, Leave]:
        """Where each branch of the thread left its parent."""
        return await self._database.read(lambda connection: read_leaves(connection, thread))

    async def verify(self, thread: Thread) -> list[Damage]:
        """Every break of the thread's chain; empty when it holds."""
        return await self._database.read(lambda connection: _verify(connection, thread))


def read_entries(
    connection: Connection, thread: int, after_seq: int = 0, count_max: int | None = None
) -> list[Recorded]:
    """Entries after `after_seq`, without erased ones (whose places in the chain remain)."""
    statement = (
        select(*_COLUMNS)
        .where(tables.entry.c.thread == thread, tables.entry.c.seq > after_seq, tables.entry.c.payload.is_not(None))
        .order_by(tables.entry.c.seq)
        .limit(count_max)
    )
    return [Recorded(*row[:6], decode(row[5], row[6])) for row in connection.execute(statement)]


def read_leaves(connection: Connection, thread: int) -> dict[int, Leave]:
    """Where each branch of a thread left its parent."""
    rows = connection.execute(select(tables.branch).where(tables.branch.c.thread == thread))
    return {row.branch: Leave(row.parent, row.fork_seq) for row in rows}


def _verify(connection: Connection, thread: Thread) -> list[Damage]:
    entry = tables.entry.c
    head = connection.execute(
        select(tables.thread.c.head_seq, tables.thread.c.head_digest).where(tables.thread.c.number == thread.number)
    ).one_or_none()
    if head is None:
        raise JournalDamaged(thread.thread_id, 0, "the thread is gone")
    damages: list[Damage] = []
    previous, expected = chain.GENESIS, 0
    rows = connection.execute(select(tables.entry).where(entry.thread == thread.number).order_by(entry.seq))
    for row in rows.yield_per(500):
        expected += 1
        if row.seq != expected:
            damages.append(Damage(expected, f"missing; the next entry is {row.seq}"))
            expected = row.seq
        digest = chain.link(
            previous,
            thread_id=thread.thread_id,
            seq=row.seq,
            branch=row.branch,
            run=row.run,
            fence=row.fence,
            at_us=row.at,
            kind=row.kind,
            payload=_payload_digest(row),
        )
        if digest != row.digest:
            damages.append(Damage(row.seq, "its content is not what was recorded, or an entry before it changed"))
        previous = row.digest
    if expected != head.head_seq:
        damages.append(Damage(expected + 1, f"the journal ends at {expected}; its head says {head.head_seq}"))
    elif previous != head.head_digest:
        damages.append(Damage(expected, "the head names another last entry"))
    return damages


def _payload_digest(row: Row[Any]) -> bytes:
    if row.payload is None or row.erased is not None:
        return _bytes(row.erased)
    return chain.payload_digest(_bytes(row.salt), _bytes(row.payload))


def _bytes(column: bytes | str | None) -> bytes:
    """The bytes of a column of any type: an edit by hand can leave text in SQLite."""
    return column.encode() if isinstance(column, str) else column or b""
