"""From the journal to a situation: the messages of a thread in their places, and the view that still fits them."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection

from threadmark.compaction.input.placement import MESSAGE_TOKENS, Counter, entries_of, placed_of, versions_of
from threadmark.compaction.input.source import Position, SourceEntry
from threadmark.compaction.model.plan import Situation
from threadmark.compaction.model.records import CurrentView, KeptView
from threadmark.compaction.store import views
from threadmark.compaction.summary import TokenCounter
from threadmark.compaction.view import Live, Masked, Pin, Segment, Summary
from threadmark.state import (
    FoldCache,
    Message,
    NotFound,
    Thread,
    ThreadState,
    fold,
    fold_thread,
    get_thread,
    lineage_of,
    read_entries,
    read_leaves,
    visible,
)
from threadmark.state.threads.thread_numbers import thread_numbers_of

__all__ = [
    "Head",
    "Loaded",
    "MessageCounter",
    "entries_as_of",
    "load_by_number",
    "load_thread",
    "read_loaded",
    "walk_heads",
]

Versions = Mapping[int, int]


class Head(NamedTuple):
    """A moment of a thread: what a branch saw up to `seq`."""

    branch: int
    seq: int


class MessageCounter:
    """Counts the tokens of messages by one counter of texts."""

    def __init__(self, count: TokenCounter) -> None:
        self.count = count

    def __call__(self, message: Message) -> int:
        """Tokens of the message with its calls. Media cost nothing here: only their server can tell."""
        texts = [message.content] if isinstance(message.content, str) else list(_texts(message))
        texts.extend(f"{call.name} {_json(call.arguments)}" for call in message.tool_calls)
        return MESSAGE_TOKENS + sum(map(self.count, texts))


def _texts(message: Message) -> Sequence[str]:
    return [str(block["text"]) for block in message.content if isinstance(block, dict) and "text" in block]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A thread as compaction sees it: its messages in order, and the view that fits them.

    `view` is the one that the thread stands at, unless the history changed under it (a fork, an edit of what it
    covers): then the nearest of its ancestors that still fits, and last the whole transcript.
    """

    thread: Thread
    current_view: CurrentView
    view: KeptView
    entries: Sequence[SourceEntry]
    segments: Mapping[str, Segment]
    versions: Versions  #: by seq: the entry that last wrote what stands there

    def situation(self, base_tokens: int = 0, *, run_in_progress: bool = False) -> Situation:
        """What a plan is made from."""
        return Situation(
            view=self.view.view,
            entries=self.entries,
            segments=self.segments,
            base_tokens=base_tokens,
            run_in_progress=run_in_progress,
        )

    def by_position(self) -> dict[Position, SourceEntry]:
        """The messages by their places."""
        return {entry.position: entry for entry in self.entries}


def read_loaded(connection: Connection, thread: Thread, state: ThreadState, count: Counter) -> Loaded:
    """The thread behind its folded state. One query for a thread that was never compacted, a few for others."""
    erased = views.erased_in(connection, thread.number)
    return _placed_in(connection, thread, entries_of(state, erased, count), versions_of(state))


def load_thread(
    connection: Connection, tenant_id: str, thread_id: str, count: Counter, fold_cache: FoldCache | None = None
) -> Loaded:
    """The tenant's thread from its journal, or from what is kept of it in `folds`; raises NotFound.

    With `folds` for readers of a snapshot only: what a unit has not committed yet must not be kept.
    """
    thread = get_thread(connection, tenant_id, thread_id)
    if fold_cache is None:
        return read_loaded(connection, thread, fold_thread(connection, thread).state, count)
    placed = placed_of(fold_cache.read(connection, thread), views.erased_in(connection, thread.number), count)
    return _placed_in(connection, thread, placed.entries, placed.versions)


def load_by_number(connection: Connection, number: int, count: Counter, fold_cache: FoldCache | None = None) -> Loaded:
    """The thread with this number, whosever it is; as `load_thread`. Raises NotFound."""
    thread = thread_numbers_of(connection, number)
    if thread is None:
        raise NotFound("Thread", str(number))
    return load_thread(connection, thread.tenant_id, thread.thread_id, count, fold_cache)


def entries_as_of(connection: Connection, number: int, branch: int, head_seq: int, count: Counter) -> list[SourceEntry]:
    """The messages of a thread as they were at `head_seq` on `branch`, whatever was written since. Raises NotFound."""
    lineage = lineage_of(read_leaves(connection, number), branch)
    seen = visible(read_entries(connection, number), lineage)
    state = fold(each for each in seen if each.seq <= head_seq)
    return entries_of(state, views.erased_in(connection, number), count)


def walk_heads(connection: Connection, number: int, heads: Collection[Head]) -> Iterator[tuple[Head, ThreadState]]:
    """The state of a thread at each of the heads and at the tip of every branch, whatever was written since.

    One fold for each branch. The state that is yielded moves on with the next one: keep nothing of it but copies.
    """
    entries, leaves = read_entries(connection, number), read_leaves(connection, number)
    for branch in sorted({0, *leaves}):
        wanted = sorted({head.seq for head in heads if head.branch == branch}, reverse=True)
        state = ThreadState()
        for each in visible(entries, lineage_of(leaves, branch)):
            while wanted and wanted[-1] < each.seq:
                yield Head(branch, wanted.pop()), state
            fold([each], state)
        yield from ((Head(branch, seq), state) for seq in reversed(wanted))
        yield Head(branch, state.seq), state


def _placed_in(connection: Connection, thread: Thread, entries: Sequence[SourceEntry], versions: Versions) -> Loaded:
    current_view = views.read_current_view(connection, thread.number)
    kept = views.find_view(connection, thread.number, current_view.view_id)
    while kept is not None:
        segments, signatures = views.read_segments(connection, thread.number, kept.view.segment_ids())
        if _fits(kept, segments, signatures, versions):
            return Loaded(
                thread=thread,
                current_view=current_view,
                view=kept,
                entries=entries,
                segments=segments,
                versions=versions,
            )
        kept = views.find_view(connection, thread.number, kept.view.parent_id)
    raise NotFound("View", current_view.view_id)


def _fits(kept: KeptView, segments: Mapping[str, Segment], signatures: Mapping[str, str], versions: Versions) -> bool:
    """Whether the view's summaries tell of the messages as they are, and every message is shown or covered."""
    head_seq = max(versions, default=0)
    shown: set[int] = set()
    for item in kept.view.items:
        match item:
            case Live(first, last):
                shown.update(range(first, head_seq + 1 if last is None else min(last, head_seq) + 1))
            case Masked(seq):
                if seq not in versions:
                    return False
                shown.add(seq)
            case Pin(seq):
                if seq not in versions:
                    return False
            case Summary(segment_id):
                segment = segments.get(segment_id)
                if segment is None:
                    return False
                if views.signature_of(segment.covered, versions) != signatures[segment_id]:
                    return False
                shown.update(segment.covered)
    return versions.keys() <= shown
