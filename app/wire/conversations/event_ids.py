"""Places in a run's stream: ids of events, from which a reader goes on after a break.

An id is `{seq}-{slot}`: the journal entry that the event belongs to, and its slot there. An entry's own events have
the slots below FLASH_SLOT, always the same ones for the same entry; what streamed after the entry, before the next one
was recorded, has those above. So an id means the same to every server that ever reads the journal.
"""

import re
from typing import NamedTuple

from threadmark.app.http.path_ids import BadEventId

__all__ = ["FLASH_SLOT", "START", "Place", "flash_slot", "read_place"]

#: The first slot after those of an entry's own events.
FLASH_SLOT = 10
#: Slots of one flash: it can be sent in several modes.
FLASH_STRIDE = 4

_ID = re.compile(r"([0-9]{1,10})-([0-9]{1,9})")
#: What clients of the dialect send to hear everything from the start.
_FROM_START = frozenset({"-1", "0"})


class Place(NamedTuple):
    """Where an event stands; places are ordered as their events are sent."""

    seq: int
    slot: int

    def __str__(self) -> str:
        return f"{self.seq}-{self.slot}"


#: Before every event.
START = Place(-1, -1)


def flash_slot(ordinal: int) -> int:
    """The first slot of the `ordinal`-th flash (from 1) after an entry."""
    return FLASH_SLOT + FLASH_STRIDE * (ordinal - 1)


def read_place(values: list[str]) -> Place | None:
    """The place in a request's Last-Event-ID headers; None where there is none, or an empty one. Raises BadEventId."""
    match [value for value in values if value]:
        case []:
            return None
        case [value] if value in _FROM_START:
            return START
        case [value] if found := _ID.fullmatch(value):
            return Place(int(found[1]), int(found[2]))
        case _:
            raise BadEventId
