"""The digest of a statement: equal for the same statement, independent of its author. Pure.

By the former rule, names and words were compared folded (without accents, case and compatibility forms). Rows of that
time, in exports above all, are recognised by the digest that it gives them, and get today's.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from threadmark.memory.model.assertion import ITEM, TURN, Cardinality
from threadmark.memory.model.instants import FAR_US
from threadmark.memory.model.values import canonical, load
from threadmark.memory.text.identity import identity_key, same_words
from threadmark.memory.text.terms import folded

__all__ = ["CURRENT_RULE", "FORMER_RULE", "Rule", "Statement", "former_digests", "renewed_digest", "statement_digest"]


class Rule(NamedTuple):
    """How names and words are spelled where they are compared."""

    name: Callable[[str], str]
    words: Callable[[str], str]


CURRENT_RULE = Rule(identity_key, same_words)
#: Of rows that were written before names were compared exactly.
FORMER_RULE = Rule(folded, folded)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """The parts of a digest. `valid_from` and `valid_to` (microseconds) only where they distinguish the statement."""

    kind: str
    text: str
    subject: str | None
    attribute: str | None
    value: Any
    moment: str | None  #: the key of the origin, for a raw turn
    known_from: int  #: for an item, which is another each time
    valid_from: int | None
    valid_to: int | None


def statement_digest(said: Statement, rule: Rule = CURRENT_RULE) -> str:
    """A statement about an attribute is its value; a text is its words.

    A raw turn, an item, an event and a statement with a validity of its own are another each time.
    """
    # A raw turn is its moment: its words only tell apart what was said in one.
    words = folded if said.kind == TURN and said.moment is not None else rule.words
    parts: list[object]
    if said.attribute is not None and said.subject is not None:
        value = said.value if said.value is not None else words(said.text)
        parts = ["attribute", rule.name(said.subject), rule.name(said.attribute), value]
    else:
        parts = ["text", words(said.text)]
    if said.kind == TURN:
        parts.append(["turn", said.moment])
    if said.kind == ITEM:
        parts = ["item", said.subject, said.value, said.known_from]
    if said.valid_from is not None:
        parts.append(["from", said.valid_from])
    if said.valid_to is not None:
        parts.append(["to", said.valid_to])
    return hashlib.sha256(canonical(parts).encode()).hexdigest()


def renewed_digest(row: Mapping[str, Any]) -> str:
    """The digest by today's rule of an assertion's row that may be older; its own where neither rule made it."""
    for said in _readings(row):
        current = statement_digest(said)
        if row["digest"] in {current, statement_digest(said, FORMER_RULE)}:
            return current
    return str(row["digest"])


def former_digests(row: Mapping[str, Any]) -> frozenset[str]:
    """The digests that the former rule can have given to an assertion's row."""
    return frozenset(statement_digest(said, FORMER_RULE) for said in _readings(row))


def _readings(row: Mapping[str, Any]) -> Iterator[Statement]:
    """What may have been said: a row does not tell whether its validity was given or taken from the moment."""
    if row["kind"] == ITEM:
        return
    said = Statement(
        kind=row["kind"],
        text=load(row["text"]),
        subject=row["subject"],
        attribute=row["attribute"],
        value=load(row["value"]),
        moment=None,
        known_from=row["known_from"],
        valid_from=None,
        valid_to=None,
    )
    yield said
    if row["cardinality"] == Cardinality.ONE:
        return
    begun = replace(said, valid_from=row["valid_from"])
    yield begun
    if row["valid_to"] != FAR_US:
        yield replace(said, valid_to=row["valid_to"])
        yield replace(begun, valid_to=row["valid_to"])
