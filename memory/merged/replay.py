"""What would be believed of one name without the other: its own statements, placed again. Pure.

Instants are microseconds.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from threadmark.memory.model.timeline import Version, place

__all__ = ["Piece", "Retraction", "Said", "replayed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A statement about the attribute, when it was said and its interval; None for one without an end of its own."""

    root_id: str
    at: int
    valid_from: int
    valid_to: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retraction:
    """That a statement is believed no more."""

    root_id: str
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """An interval in which a statement is believed to be true."""

    root_id: str
    valid_from: int
    valid_to: int


def replayed(events: Iterable[Said | Retraction]) -> list[Piece]:
    """What is believed in the end, by the rules of a single-valued attribute, in the order of validity.

    Of events at one instant the first given comes first.
    """
    pieces: list[Piece] = []
    for event in sorted(events, key=lambda each: each.at):
        if isinstance(event, Retraction):
            pieces = [each for each in pieces if each.root_id != event.root_id]
            continue
        held = [
            Version(assertion_id=str(number), valid_from=each.valid_from, valid_to=each.valid_to, known_from=0)
            for number, each in enumerate(pieces)
        ]
        placement = place(held, event.valid_from, event.valid_to)
        left = [
            replace(pieces[int(part.of)], valid_from=part.valid_from, valid_to=part.valid_to)
            for part in placement.remainders
        ]
        kept = [each for number, each in enumerate(pieces) if str(number) not in placement.closed]
        new = Piece(root_id=event.root_id, valid_from=placement.valid_from, valid_to=placement.valid_to)
        pieces = [*kept, *left, new]
    return sorted(pieces, key=lambda each: each.valid_from)
