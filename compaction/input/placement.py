"""The messages of a folded thread as compaction reads them, and what of them is kept beside the fold.

To move a view nothing of ten thousand messages has to be made again. What was made of them lives and dies with the
fold: one that an erasure, a fork or another journal ended takes its entries along, and so does an evicted one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import is_

from threadmark.compaction.input.source import Position, Role, SourceEntry
from threadmark.compaction.input.transcript import source_entry
from threadmark.state import Folded, Message, ThreadState

__all__ = ["MESSAGE_TOKENS", "Counter", "Placed", "entries_of", "placed_of", "versions_of"]

MESSAGE_TOKENS = 4  #: of a message beside its text
Counter = Callable[[Message], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The messages in their places, and what they were made from. Shared: do not change it."""

    entries: tuple[SourceEntry, ...]
    versions: Mapping[int, int]
    messages: Mapping[str, Message]
    places: Mapping[str, tuple[int, int, int]]
    open_ids: frozenset[str]
    erased: Mapping[Position, Role]

    def is_of(self, state: ThreadState, erased: Mapping[Position, Role]) -> bool:
        """Whether the same would be made now. By identity: equal messages may be written differently (1 and true)."""
        return (
            len(self.messages) == len(state.by_id)
            and all(map(is_, self.messages.values(), state.by_id.values()))
            and self.places == state.places
            and self.open_ids == _open_ids(state)
            and self.erased == erased
        )


def placed_of(folded: Folded, erased: Mapping[Position, Role], count: Counter) -> Placed:
    """The messages of a fold, kept beside it for the next request with the same counter."""
    state = folded.state
    before = folded.around.get(count)
    known = before if isinstance(before, Placed) else None
    if known is not None and known.is_of(state, erased):
        return known
    placed = Placed(
        entries=tuple(entries_of(state, erased, count, known)),
        versions=versions_of(state),
        messages=dict(state.by_id),
        places=dict(state.places),
        open_ids=_open_ids(state),
        erased=dict(erased),
    )
    folded.around[count] = placed
    return placed


def entries_of(
    state: ThreadState, erased: Mapping[Position, Role], count: Counter, known: Placed | None = None
) -> list[SourceEntry]:
    """The transcript as compaction reads it, in the order of the journal; erased messages keep their place.

    An erased message of another branch has no place in it: a view of this branch never showed it.
    What `known` has of the very same messages, in the same places, is not made again.
    """
    open_ids = _open_ids(state)
    made = {} if known is None else {entry.position: entry for entry in known.entries if not entry.erased}
    messages = {} if known is None else known.messages
    entries = []
    for message_id, message in state.by_id.items():
        place = state.places[message_id]
        position = Position(place.seq, place.ordinal)
        if position in erased:
            role = erased[position]
            entries.append(
                SourceEntry(seq=place.seq, message=place.ordinal, role=role, erased=True, tokens=MESSAGE_TOKENS)
            )
            continue
        is_open = any(call.id in open_ids for call in message.tool_calls)
        entry = made.get(position) if messages.get(message_id) is message else None
        if entry is None or entry.message_id != message_id or entry.is_open is not is_open:
            entry = source_entry(message, place.seq, ordinal=place.ordinal, tokens=count(message), is_open=is_open)
        entries.append(entry)
    return sorted(entries, key=lambda entry: entry.position)


def versions_of(state: ThreadState) -> dict[int, int]:
    """By seq of each entry with messages: the seq of the entry that last wrote one of them."""
    versions: dict[int, int] = {}
    for place in state.places.values():
        versions[place.seq] = max(place.written_seq, versions.get(place.seq, 0))
    return versions


def _open_ids(state: ThreadState) -> frozenset[str]:
    return frozenset(call.call.id for call in state.open_calls)
