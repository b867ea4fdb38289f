"""A per-process cache of folds, so that the next turn of a thread folds only new entries.

The cache is never the source of truth. A fold is used only if the thread's row shows that nothing but appends has
happened since: the digest of its last entry identifies the journal, the lineage identifies the branch, and the erasure
count shows that no text was erased.
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

#: Limit on the cached folds, in bytes of their journals. A fold takes about three times as much memory, and what
#: compaction derives from its messages takes about as much as the journal again.
FOLD_BYTES_MAX = 64 * 1024 * 1024
#: A fold that was not used for this long (seconds) is evicted, and any text erased meanwhile is evicted with it.
FOLD_KEPT_S = 60.0
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """A journal folded up to its head, along the thread's lineage. Its owner may advance `state` and `outline`.

    Attributes:
        erasures: The thread's erasure count when it was folded.
        byte_count: Bytes of the payloads that were folded.
        beside: Data that other packages derived from the messages, each under its own key. It is copied and advanced
            with the fold and stored nowhere else, so it never outlives erased text. Users of this data must check that
            the messages are unchanged.
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
        """Whether this is the current fold of the thread's journal."""
        return self.may_grow_to(thread) and (self.head_seq, self.head_digest) == (thread.head_seq, thread.head_digest)

    def may_grow_to(self, thread: Thread) -> bool:
        """Whether it is on the thread's branch, with nothing but appends since."""
        return self.lineage == thread.lineage and self.erasures == thread.erasures and self.head_seq <= thread.head_seq

    def copy(self) -> "Folded":
        """A copy that can be advanced while this fold stays cached."""
        return replace(self, state=self.state.snapshot(), run_index=self.run_index.copy())


def fold_thread(connection: Connection, thread: Thread, base: Folded | None = None) -> Folded:
    """The thread's journal up to its head: one query for all of it, or for the entries after `base`, which is advanced.

    A `base` of another journal, of another branch or from before an erasure is not used.
    """
    moved = None if base is None else _moved(connection, thread, base)
    if moved is not None:
        return moved
    return _grown(thread, _rows(connection, thread, 1), ThreadState(), RunIndex(), 0, {})


def empty_fold(thread: Thread) -> Folded:
    """The fold of an empty journal; needs no query."""
    return _grown(thread, (), ThreadState(), RunIndex(), 0, {})


def _moved(connection: Connection, thread: Thread, base: Folded) -> Folded | None:
    if not base.may_grow_to(thread):
        return None
    # Read the last folded entry again: a database that was restored from a backup and written to since has another
    # entry in its place.
    rows = _rows(connection, thread, base.head_seq)
    if not rows or rows[0].seq != base.head_seq or rows[0].digest != base.head_digest:
        return None
    return _grown(thread, rows[1:], base.state, base.run_index, base.byte_count, base.around)


def _rows(connection: Connection, thread: Thread, from_seq: int) -> Sequence[Any]:
    entry = tables.entry.c
    columns = (entry.seq, entry.branch, entry.run, entry.fence, entry.at, entry.kind, entry.payload, entry.digest)
    # Read up to the head in the row and no further: a unit that writes reads the row and the entries in two snapshots,
    # and entries appended in between would be folded a second time when the fold is advanced.
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
    """The folds that a process caches, least recently used out first, up to a number of bytes. Thread-safe."""

    def __init__(
        self, byte_count_max: int = FOLD_BYTES_MAX, *, kept_s: float = FOLD_KEPT_S, clock: Clock = time.monotonic
    ) -> None:
        """With `byte_count_max` 0 nothing is cached; `clock` returns seconds."""
        self._byte_count_max = byte_count_max
        self._kept_s = kept_s
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, tuple[Folded, float]] = OrderedDict()
        self.byte_count = 0  #: bytes of the cached folds' journals

    @property
    def numbers(self) -> list[int]:
        """The numbers of the threads with a cached fold, the most recently used last."""
        with self._lock:
            return list(self._kept)

    def find(self, thread: Thread) -> Folded | None:
        """A copy of the thread's cached fold, if it can be advanced to the thread's present head."""
        with self._lock:
            folded = self._pop(thread.number)
            if folded is None or not folded.may_grow_to(thread):
                return None
            self._put(thread.number, folded)
        return folded.copy()

    def read(self, connection: Connection, thread: Thread, *, keep: bool = True) -> Folded:
        """The thread's journal folded up to its head, for a reader of the snapshot that has the thread's row; also
        cached.

        At most one query. A unit that writes must not `keep` it: what it sees may never be committed.
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
        """Cache a fold of the thread with this number; the caller must not advance it afterwards."""
        with self._lock:
            self._pop(number)
            if folded.byte_count > self._byte_count_max:
                return
            self._put(number, folded)
            while self.byte_count > self._byte_count_max:
                self._pop(next(iter(self._kept)))

    def forget(self) -> None:
        """Evict folds that were not used for a while."""
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
