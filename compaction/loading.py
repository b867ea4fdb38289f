"""From the journal to a situation: the messages of a thread in their places, and the view that still fits them."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from compaction.plan import Situation
from compaction.records import KeptView, Standing
from compaction.source import Position, Role, SourceEntry
from compaction.store import views
from compaction.summary import TokenCounter
from compaction.transcript import source_entry
from compaction.view import Live, Masked, Pin, Segment, Summary
from state import (
    Message,
    NotFound,
    Thread,
    ThreadState,
    fold,
    get_thread,
    lineage_of,
    read_entries,
    read_leaves,
    visible,
)
from state.numbered import find_numbered

__all__ = [
    "Loaded",
    "MessageCounter",
    "entries_as_of",
    "entries_of",
    "load_numbered",
    "load_thread",
    "read_loaded",
    "versions_of",
]

MESSAGE_TOKENS = 4  #: of a message beside its text
CACHE_COUNT_MAX = 100_000
Versions = Mapping[int, int]


class MessageCounter:
    """Counts the tokens of messages by one counter; a text that was counted is not counted again."""

    def __init__(self, count: TokenCounter) -> None:
        self.count = count
        self._known: dict[bytes, int] = {}

    def __call__(self, message: Message) -> int:
        """Tokens of the message with its calls. Media cost nothing here: only their server can tell."""
        texts = [message.content] if isinstance(message.content, str) else list(_texts(message))
        texts.extend(f"{call.name} {_json(call.arguments)}" for call in message.tool_calls)
        return MESSAGE_TOKENS + sum(map(self._counted, texts))

    def _counted(self, text: str) -> int:
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= CACHE_COUNT_MAX:
                self._known.clear()
            known = self._known[key] = self.count(text)
        return known


def _texts(message: Message) -> Sequence[str]:
    return [str(block["text"]) for block in message.content if isinstance(block, dict) and "text" in block]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A thread as compaction sees it: its messages in order, and the view that fits them.

    `view` is the one that the thread stands at, unless the history changed under it (a fork, an edit of what it
    covers): then the nearest of its ancestors that still fits, at last the whole.
    """

    thread: Thread
    standing: Standing
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


def entries_of(
    state: ThreadState, erased: Mapping[Position, Role], count: Callable[[Message], int]
) -> list[SourceEntry]:
    """The transcript as compaction reads it, in the order of the journal; erased messages keep their place."""
    open_ids = {call.call.id for call in state.open_calls}
    entries = []
    for message_id, message in state.by_id.items():
        place = state.places[message_id]
        position = Position(place.seq, place.ordinal)
        if position in erased:
            continue
        entries.append(
            source_entry(
                message,
                place.seq,
                ordinal=place.ordinal,
                tokens=count(message),
                is_open=any(call.id in open_ids for call in message.tool_calls),
            )
        )
    gone = [
        SourceEntry(seq=position.seq, message=position.message, role=role, erased=True, tokens=MESSAGE_TOKENS)
        for position, role in erased.items()
        if position.seq <= state.seq
    ]
    return sorted([*entries, *gone], key=lambda entry: entry.position)


def versions_of(state: ThreadState, erased: Mapping[Position, Role]) -> dict[int, int]:
    """By seq of each entry with messages: the seq of the entry that last wrote one of them."""
    versions: dict[int, int] = {position.seq: position.seq for position in erased if position.seq <= state.seq}
    for place in state.places.values():
        versions[place.seq] = max(place.written_seq, versions.get(place.seq, 0))
    return versions


def read_loaded(connection: Connection, thread: Thread, state: ThreadState, count: Callable[[Message], int]) -> Loaded:
    """The thread behind its folded state. One query for a thread that was never compacted, a few for others."""
    erased = views.erased_in(connection, thread.number)
    entries, versions = entries_of(state, erased, count), versions_of(state, erased)
    standing = views.read_standing(connection, thread.number)
    kept = views.find_view(connection, thread.number, standing.view_id)
    while kept is not None:
        segments, signatures = views.read_segments(connection, thread.number, kept.view.segment_ids())
        if _fits(kept, segments, signatures, versions):
            return Loaded(
                thread=thread, standing=standing, view=kept, entries=entries, segments=segments, versions=versions
            )
        kept = views.find_view(connection, thread.number, kept.view.parent_id)
    raise NotFound("View", standing.view_id)


def load_thread(
    connection: Connection, tenant_id: str, thread_id: str, count: Callable[[Message], int], upto_seq: int | None = None
) -> Loaded:
    """The tenant's thread from its journal; up to `upto_seq`, as it was then. Raises NotFound."""
    thread = get_thread(connection, tenant_id, thread_id)
    recorded = visible(read_entries(connection, thread.number), thread.lineage)
    state = fold(each for each in recorded if upto_seq is None or each.seq <= upto_seq)
    return read_loaded(connection, thread, state, count)


def load_numbered(connection: Connection, number: int, count: Callable[[Message], int]) -> Loaded:
    """The thread with this number, whosever it is. Raises NotFound."""
    thread = find_numbered(connection, number)
    if thread is None:
        raise NotFound("Thread", str(number))
    return load_thread(connection, thread.tenant_id, thread.thread_id, count)


def entries_as_of(
    connection: Connection, number: int, branch: int, head_seq: int, count: Callable[[Message], int]
) -> list[SourceEntry]:
    """The messages of a thread as they were at `head_seq` on `branch`, whatever was written since. Raises NotFound."""
    lineage = lineage_of(read_leaves(connection, number), branch)
    seen = visible(read_entries(connection, number), lineage)
    state = fold(each for each in seen if each.seq <= head_seq)
    return entries_of(state, views.erased_in(connection, number), count)


def _fits(kept: KeptView, segments: Mapping[str, Segment], signatures: Mapping[str, str], versions: Versions) -> bool:
    """Whether the view's summaries tell of the messages as they are, and every message is shown or covered."""
    shown: set[int] = set()
    ranges: list[tuple[int, int | None]] = []
    for item in kept.view.items:
        match item:
            case Live(first, last):
                ranges.append((first, last))
            case Masked(seq):
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
    left = [seq for seq in versions if seq not in shown]
    masked = [item.seq for item in kept.view.items if isinstance(item, Masked)]
    return all(seq in versions for seq in masked) and all(
        any(first <= seq and (last is None or seq <= last) for first, last in ranges) for seq in left
    )
