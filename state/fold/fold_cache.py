"""Folds that a process keeps, so that the next turn of a thread folds what is new and not the whole journal.

A cache and never the truth: a fold is used only where the thread's row says that nothing but appends has happened
since. The digest of its last entry says that the journal is the same one, the lineage that the thread stands on the
same branch, and the count of erasures that no word was taken out of it.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, select

from threadmark.state import tables
from threadmark.state.entries.entry import Recorded, decode
from threadmark.state.entries.lineage import Lineage, visible
from threadmark.state.entries.run_index import RunIndex
from threadmark.state.fold.fold import fold
from threadmark.state.fold.thread_state import ThreadState
from threadmark.state.records import Thread

__all__ = ["FOLD_BYTES_MAX", "FOLD_KEPT_S", "FoldCache", "Folded", "empty_fold", "fold_thread"]

#: Bytes of the journals whose folds a process keeps. A fold takes about three times as much memory, and
#: what compaction makes of its messages about as much as the journal again.
FOLD_BYTES_MAX = 64 * 1024 * 1024
#: A fold that nobody asked for in so many seconds is let go: words that were erased meanwhile go with it.
FOLD_KEPT_S = 60.0
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """A journal folded up to its head, as the thread's lineage sees it. `state` and `outline` are its owner's to move.

    Attributes:
        erasures: The thread's count of erasures when it was folded.
        byte_count: Bytes of the payloads that went into it.
        beside: What others made of its messages, by a key of their own. It goes where the fold goes, to its copies and
            to what it is moved on to, and nowhere else: nothing of it outlives words that were erased. Whoever takes
            something from it sees to it that the messages are still the same.
    """

    head_seq: int
    head_digest: bytes
    lineage: Lineage
    erasures: int
    state: ThreadState
    run_index: RunIndex
    byte_count: int
    around: dict[object, object] = field(default_factory=dict, compare=False, repr=False)

    def is_of(self, thread: Thread) -> bool:
        """Whether this is what the thread's journal folds to now."""
        return self.may_grow_to(thread) and (self.head_seq, self.head_digest) == (thread.head_seq, thread.head_digest)

    def may_grow_to(self, thread: Thread) -> bool:
        """Whether it lies on the thread's branch, and before nothing but appends."""
        return self.lineage == thread.lineage and self.erasures == thread.erasures and self.head_seq <= thread.head_seq

    def copy(self) -> "Folded":
        """One that can be moved on while this one is kept."""
        return replace(self, state=self.state.snapshot(), run_index=self.run_index.copy())


def fold_thread(connection: Connection, thread: Thread, base: Folded | None = None) -> Folded:
    """The thread's journal up to its head: one query for all of it, or for what came after `base`, which is moved on.

    A `base` that is of another journal, of another branch or from before an erasure is not used.
    """
    moved = None if base is None else _moved(connection, thread, base)
    if moved is not None:
        return moved
    return _grown(thread, _rows(connection, thread, 1), ThreadState(), RunIndex(), 0, {})


def empty_fold(thread: Thread) -> Folded:
    """The fold of a journal that has nothing yet: no query."""
    return _grown(thread, (), ThreadState(), RunIndex(), 0, {})


def _moved(connection: Connection, thread: Thread, base: Folded) -> Folded | None:
    if not base.may_grow_to(thread):
        return None
    # The last entry that was folded is read again: a database that was set back to an older state and went on from
    # there has another one at its place.
    rows = _rows(connection, thread, base.head_seq)
    if not rows or rows[0].seq != base.head_seq or rows[0].digest != base.head_digest:
        return None
    return _grown(thread, rows[1:], base.state, base.run_index, base.byte_count, base.around)


def _rows(connection: Connection, thread: Thread, from_seq: int) -> Sequence[Any]:
    entry = tables.entry.c
    columns = (entry.seq, entry.branch, entry.run, entry.fence, entry.at, entry.kind, entry.payload, entry.digest)
    # To the head of the row and no further: a unit that writes reads it and the entries in two snapshots, and what was
    # appended in between would be folded once more by whoever moves the fold on.
    part = entry.seq.between(from_seq, thread.head_seq)
    return connection.execute(select(*columns).where(entry.thread == thread.number, part).order_by(entry.seq)).all()


def _grown(
    thread: Thread,
    rows: Sequence[Any],
    state: ThreadState,
    run_index: RunIndex,
    byte_count: int,
    around: dict[object, object],
) -> Folded:
    entries = [
        Recorded(row.seq, row.branch, row.run, row.fence, row.at, row.kind, decode(row.kind, row.payload))
        for row in rows
        if row.payload is not None
    ]
    run_index.see(entries)
    return Folded(
        head_seq=thread.head_seq,
        head_digest=thread.head_digest,
        lineage=thread.lineage,
        erasures=thread.erasures,
        state=fold(visible(entries, thread.lineage), state),
        run_index=run_index,
        byte_count=byte_count + sum(len(row.payload) for row in rows if row.payload is not None),
        around=around,
    )


class FoldCache:
    """The folds that a process keeps: those asked for last, up to a number of bytes. Any thread may call."""

    def __init__(
        self, byte_count_max: int = FOLD_BYTES_MAX, *, kept_s: float = FOLD_KEPT_S, clock: Clock = time.monotonic
    ) -> None:
        """`byte_count_max` of 0 keeps nothing; `clock` tells seconds."""
        self._byte_count_max = byte_count_max
        self._kept_s = kept_s
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, tuple[Folded, float]] = OrderedDict()
        self.byte_count = 0  #: bytes of the journals whose folds are kept

    @property
    def numbers(self) -> list[int]:
        """The threads whose folds are kept, the one asked for last at the end."""
        with self._lock:
            return list(self._kept)

    def find(self, thread: Thread) -> Folded | None:
        """A copy of what is kept of the thread, if it may be moved on to where the thread stands."""
        with self._lock:
            folded = self._pop(thread.number)
            if folded is None or not folded.may_grow_to(thread):
                return None
            self._put(thread.number, folded)
        return folded.copy()

    def read(self, connection: Connection, thread: Thread, *, keep: bool = True) -> Folded:
        """The thread's journal folded up to its head, for a reader of the snapshot that has the thread's row; kept too.

        At most one query. A unit that writes does not `keep` it: what it sees may never be committed.
        """
        kept = self.find(thread)
        if kept is not None and kept.is_of(thread):
            return kept
        folded = fold_thread(connection, thread, kept)
        if not keep:
            return folded
        self.keep(thread.number, folded)
        return folded.copy()

    def keep(self, number: int, folded: Folded) -> None:
        """Keep a fold of the thread with this number; nobody may move it on any more."""
        with self._lock:
            self._pop(number)
            if folded.byte_count > self._byte_count_max:
                return
            self._put(number, folded)
            while self.byte_count > self._byte_count_max:
                self._pop(next(iter(self._kept)))

    def forget(self) -> None:
        """Let go of what nobody asked for in a while."""
        with self._lock:
            since = self._clock() - self._kept_s
            for number in [number for number, (_, at) in self._kept.items() if at < since]:
                self._pop(number)

    def _put(self, number: int, folded: Folded) -> None:
        self._kept[number] = folded, self._clock()
        self.byte_count += folded.byte_count

    def _pop(self, number: int) -> Folded | None:
        folded, _ = self._kept.pop(number, (None, 0.0))
        if folded is not None:
            self.byte_count -= folded.byte_count
        return folded
