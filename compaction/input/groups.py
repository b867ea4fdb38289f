"""Atomic groups: messages that only make sense together, and so stay or leave together."""

from collections.abc import Sequence
from dataclasses import dataclass

from threadmark.compaction.input.source import Role, SourceEntry

__all__ = ["Group", "Pairing", "groups_of", "pair_results"]


@dataclass(frozen=True, slots=True)
class Group:
    """A run of messages, from `start` to before `end` in the sequence it was found in.

    An open group waits for something: a result, an approval, a person.
    """

    start: int
    end: int
    is_open: bool


@dataclass(frozen=True, slots=True)
class Pairing:
    """Which result answers which call.

    `result_of` has for the place of each message with calls the place of the result of each call, or None where none
    came in time. A result is in time when no other speaker came between. `strays` are the places of results that
    answer nothing in time: without a call before them, a second answer, or too late. `late` has for a stray the place
    of the message that asked, where that is known.
    """

    result_of: dict[int, list[int | None]]
    strays: frozenset[int]
    late: dict[int, int]


def pair_results(entries: Sequence[SourceEntry]) -> Pairing:
    """Pair calls and results in one pass; ids may be missing or used twice."""
    result_of: dict[int, list[int | None]] = {}
    strays: set[int] = set()
    late: dict[int, int] = {}
    unanswered: dict[str, int] = {}  # call id -> place of the last message that asked and got nothing
    asker: int | None = None
    for place, entry in enumerate(entries):
        if entry.role is not Role.TOOL:
            asker = place if entry.calls else None
            if entry.calls:
                result_of[place] = [None] * len(entry.calls)
                unanswered.update((call.call_id, place) for call in entry.calls)
            continue
        for call_id in entry.answers or ("",):
            slot = _free_slot(entries[asker], result_of[asker], call_id) if asker is not None else None
            if slot is not None and asker is not None:
                result_of[asker][slot] = place
                if unanswered.get(call_id) == asker and _free_slot(entries[asker], result_of[asker], call_id) is None:
                    del unanswered[call_id]
            else:
                strays.add(place)
                if call_id in unanswered:
                    late[place] = unanswered.pop(call_id)
    # A message may carry several results: it is a stray only if none of them found its call.
    used = {place for slots in result_of.values() for place in slots if place is not None}
    return Pairing(
        result_of, frozenset(strays - used), {place: call for place, call in late.items() if place not in used}
    )


def _free_slot(asker: SourceEntry, slots: list[int | None], call_id: str) -> int | None:
    return next((at for at, call in enumerate(asker.calls) if call.call_id == call_id and slots[at] is None), None)


def groups_of(entries: Sequence[SourceEntry]) -> list[Group]:
    """The groups in order; every message is in exactly one.

    Together are: a message with calls and all results up to the next speaker; a late result and the message that asked;
    the messages of one journal entry; messages that share a link. What lies between two of a group belongs to it too.
    """
    if not entries:
        return []
    reach = list(range(len(entries)))  # reach[i]: the last place that must stay with place i
    pairing = pair_results(entries)
    asker: int | None = None
    first_of: dict[str, int] = {}
    for place, entry in enumerate(entries):
        if entry.role is not Role.TOOL:
            asker = place if entry.calls else None
        elif asker is not None:
            reach[asker] = place
        if place in pairing.late:
            reach[pairing.late[place]] = max(reach[pairing.late[place]], place)
        for key in (f"seq:{entry.seq}", *(f"link:{link}" for link in entry.links)):
            first = first_of.setdefault(key, place)
            reach[first] = max(reach[first], place)
    return _closed_runs(entries, reach, pairing)


def _closed_runs(entries: Sequence[SourceEntry], reach: Sequence[int], pairing: Pairing) -> list[Group]:
    groups: list[Group] = []
    start = 0
    while start < len(entries):
        end, place = reach[start], start
        while place <= end:
            end = max(end, reach[place])
            place += 1
        is_open = any(_waits(entries, at, pairing) for at in range(start, end + 1))
        groups.append(Group(start, end + 1, is_open))
        start = end + 1
    return groups


def _waits(entries: Sequence[SourceEntry], place: int, pairing: Pairing) -> bool:
    """Whether this place is still open: the entry says so, or a call has no result and no speaker came after it.

    A call that a person or the model spoke after will never be answered in its place: it must not block for ever.
    """
    if entries[place].is_open:
        return True
    slots = pairing.result_of.get(place, ())
    if all(slot is not None for slot in slots):
        return False
    return all(entry.role is Role.TOOL for entry in entries[place + 1 :])
