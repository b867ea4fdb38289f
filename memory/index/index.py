"""The port of an index: it proposes assertions by likeness, and never decides.

An index is derived from the database and can be dropped and built again. It keeps no text: an entry is a number, the
term weights of two lexical fields, an embedding, and opaque tags that say whose it is.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from threadmark.memory.errors import FilterRefused
from threadmark.memory.model.admission import Hold
from threadmark.memory.model.filters import Filter
from threadmark.memory.model.question import Include, Question
from threadmark.memory.model.scope import Scope
from threadmark.memory.model.values import canonical
from threadmark.memory.text.terms import folded

__all__ = ["Arms", "Entry", "Index", "Probe", "Tags", "Vector", "Within", "tag", "tags_of", "within"]

#: Arm → number of the entry → score.
Arms = dict[str, dict[int, float]]
Tags = frozenset[str]
Vector = Sequence[float] | NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What an index keeps of an assertion, under the number that the database gave it."""

    number: int
    tags: Tags
    digest: str  #: of everything the entry was made from: equal digests, equal entries
    text: Mapping[int, float]
    context: Mapping[int, float]
    dense: Vector | None  #: None while its space waits to be replaced by one that can be embedded for


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What is looked for: the terms of a question, each with its weight, and its embedding if there is one."""

    terms: Mapping[int, float]
    dense: Vector | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """Where to look: an entry must have a tag of every group. The first group is the scope; there is always one.

    Raises FilterRefused for no group or an empty one: to an index, an empty filter is every entry of every tenant.
    """

    groups: tuple[Tags, ...]
    corpus: tuple[Tags, ...] = field(default=())  #: the groups over which the rarity of a term is counted

    def __post_init__(self) -> None:
        if not self.groups or not all(self.groups):
            raise FilterRefused("filter", "is empty")


class Index(Protocol):
    """One index, many spaces. Every method may raise IndexUnavailable; a call that raised can be repeated."""

    async def open(self, space: str, dimension: int) -> None:
        """Make the space if it is not there, and be ready to answer."""

    async def put(self, space: str, entries: Sequence[Entry]) -> None:
        """Keep the entries, in place of those with the same numbers."""

    async def remove(self, space: str, numbers: Sequence[int]) -> None:
        """Forget these entries; one that is not there is no error."""

    async def near(self, space: str, probe: Probe, place: Within, count_max: int) -> Arms:
        """The best `count_max` entries of each arm."""
        ...

    async def score(self, space: str, probe: Probe, place: Within, numbers: Sequence[int]) -> Arms:
        """Every arm's score of these entries; an arm says nothing of an entry without a term of the question."""
        ...

    async def digests(self, space: str, after: int, count_max: int) -> list[tuple[int, str]]:
        """Up to `count_max` numbers above `after` with their digests, in order."""
        ...

    async def count(self, space: str) -> int:
        """How many entries the space has."""
        ...

    async def drop(self, space: str) -> None:
        """Forget the whole space."""

    async def close(self) -> None:
        """Bring everything to disk and let go of it."""


def tag(name: str, value: str) -> str:
    """An opaque tag: no label of a person is readable in an index."""
    return hashlib.sha256(canonical([name, value]).encode()).hexdigest()[:24]


KNOWN = tag("known", "")


def tags_of(scope: Scope, *, is_known: bool, hold: str, labels: Mapping[str, str | None]) -> Tags:
    """The tags of an entry: every scope that covers it, whether it is believed now, and what filters may ask for."""
    tags = {tag("scope", each.key) for each in scope.ancestors()}
    if is_known and hold == Hold.NONE:
        tags.add(KNOWN)
    tags.update(tag(name, value) for name, value in labels.items() if value is not None)
    return frozenset(tags)


def within(question: Question) -> Within:
    """Where an index has to look for answers to `question`."""
    scope = frozenset({tag("scope", question.scope.key)})
    groups = [scope]
    # Only a question about now can do without beliefs that have ended.
    if question.include is not Include.ALL and question.known_at is None:
        groups.append(frozenset({KNOWN}))
    corpus = tuple(groups)
    groups.extend(
        frozenset(tag(name, str(value)) for value in values) for name, values in _asked(question.filter).items()
    )
    return Within(groups=tuple(groups), corpus=corpus)


def _asked(given: Filter) -> dict[str, frozenset[str]]:
    names = ("kind", "subject", "attribute", "trust", "actor", "thread_ref", "run_ref")
    asked = {name: values for name in names if (values := getattr(given, name)) is not None}
    # Tags of names are folded; which of the proposed is meant exactly, the database decides.
    return asked | {name: frozenset(map(folded, asked[name])) for name in ("subject", "attribute") if name in asked}
