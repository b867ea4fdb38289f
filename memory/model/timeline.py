"""The two time axes of an attribute: what was true when, and what was believed when. Pure; instants are microseconds.

Both intervals are half-open and `FAR_US` is their open end. A version is never rewritten. A change closes the belief in
the versions it touches, and believes what is left of them (before it, after it) anew:

    believed   Oslo   [2020, …)                     Oslo   [2020, 2023)   believed again, shorter
    stated     Bergen [2023, …)             →       Bergen [2023, …)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from threadmark.memory.model.instants import FAR_US

__all__ = ["Placement", "Remainder", "Succession", "Version", "cover", "held_at", "place"]


class Succession(StrEnum):
    """How a version came after another one."""

    SUPERSEDES = "supersedes"  #: the newer ended the belief in the older
    REMAINS = "remains"  #: the newer is what remained of the older
    RENEWS = "renews"  #: the older had expired before the newer was said
    PARTED = "parted"  #: beside another kind: the two are of different names, and were parted by hand


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """The times of one assertion."""

    assertion_id: str
    valid_from: int
    valid_to: int = FAR_US
    known_from: int
    known_to: int = FAR_US


@dataclass(frozen=True, slots=True, kw_only=True)
class Remainder:
    """What stays true of a version that was closed, outside the new one's validity."""

    of: str
    valid_from: int
    valid_to: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where a new version goes, whose belief it ends and what of those is believed anew."""

    valid_from: int
    valid_to: int
    closed: tuple[str, ...]
    remainders: tuple[Remainder, ...]


def held_at(version: Version, valid_at: int, known_at: int) -> bool:
    """Whether the version was believed at `known_at` to be true at `valid_at`."""
    return version.valid_from <= valid_at < version.valid_to and version.known_from <= known_at < version.known_to


def cover(held: Iterable[Version], instant: int) -> Version | None:
    """The version that is believed now to be true at `instant`."""
    return next((each for each in held if each.valid_from <= instant < each.valid_to), None)


def place(held: Sequence[Version], valid_from: int, valid_to: int | None) -> Placement:
    """Put a new version of a single-valued attribute among those believed now (`held`: no two overlap).

    Without an end of its own it lasts until the next change already known, so a statement that arrives late fills the
    past and does not undo the present. With one it takes exactly its interval from the versions that held it.
    """
    later = [each.valid_from for each in held if each.valid_from > valid_from]
    end = min(later, default=FAR_US) if valid_to is None else valid_to
    closed: list[str] = []
    remainders: list[Remainder] = []
    for each in held:
        if each.valid_to <= valid_from or each.valid_from >= end:
            continue
        closed.append(each.assertion_id)
        if each.valid_from < valid_from:
            remainders.append(Remainder(of=each.assertion_id, valid_from=each.valid_from, valid_to=valid_from))
        if end < each.valid_to:
            remainders.append(Remainder(of=each.assertion_id, valid_from=end, valid_to=each.valid_to))
    return Placement(valid_from=valid_from, valid_to=end, closed=tuple(closed), remainders=tuple(remainders))
