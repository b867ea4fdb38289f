"""Assertions: what is proposed, what is held, and what became of a proposal."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from threadmark.memory.errors import Refused
from threadmark.memory.model.provenance import Evidence, Origin, Trust
from threadmark.memory.model.scope import Namespace, namespace_of
from threadmark.memory.model.values import check_json, check_label, check_text

__all__ = ["ITEM", "TURN", "Assertion", "Cardinality", "Closing", "Disposition", "Draft", "Verdict", "Which"]

#: The kind of a raw message, kept word for word.
TURN = "turn"
#: The kind of a keyed JSON document, replaced as a whole.
ITEM = "item"


class Cardinality(StrEnum):
    """How many values an attribute has at one instant."""

    ONE = "one"
    MANY = "many"
    EVENT = "event"


class Closing(StrEnum):
    """Why a belief ended."""

    SUPERSEDED = "superseded"
    RETRACTED = "retracted"
    UNDONE = "undone"


class Which(StrEnum):
    """Which assertions a list shows."""

    CURRENT = "current"  #: believed now
    QUARANTINED = "quarantined"  #: kept apart until they are approved
    ALL = "all"  #: every version, also those whose belief has ended


class Disposition(StrEnum):
    """What became of a proposal."""

    ADDED = "added"
    DUPLICATE = "duplicate"  #: held already; its evidence was added
    SUPERSEDED = "superseded"  #: added, and it ended the belief in others
    QUARANTINED = "quarantined"  #: stored, not recalled until it is approved


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A statement to remember. `observed_at` is the moment's clock, `valid_from` defaults to it.

    Raises Refused, naming the field, for what could not be returned as it came.
    """

    namespace: Namespace
    text: str
    observed_at: datetime
    subject: str | None = None
    attribute: str | None = None
    value: Any = None
    cardinality: Cardinality | None = None
    kind: str = "fact"
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    expires_at: datetime | None = None
    confidence: float = 1.0
    trust: Trust = Trust.USER
    origin: Origin = field(default_factory=Origin)
    asserted_by: str = "user"
    extractor: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "namespace", namespace_of(self.namespace))
        check_text(self.text, "text")
        check_label(self.kind, "kind")
        check_label(self.asserted_by, "asserted_by")
        for name in ("subject", "attribute", "extractor"):
            if getattr(self, name) is not None:
                check_label(getattr(self, name), name)
        if (self.subject is None) != (self.attribute is None):
            raise Refused("attribute", "needs a subject, and a subject needs an attribute")
        if self.attribute is None and (self.value is not None or self.cardinality is not None):
            raise Refused("value", "needs a subject and an attribute")
        check_json(self.value, "value")
        if not (isinstance(self.confidence, int | float) and 0 <= self.confidence <= 1):
            raise Refused("confidence", "is not a number from 0 to 1")
        if self.valid_to is not None and self.valid_to <= (self.valid_from or self.observed_at):
            raise Refused("valid_to", "is not after valid_from")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """A statement held true over [valid_from, valid_to) and believed over [known_from, known_to); None is open."""

    assertion_id: str
    tenant_id: str
    namespace: Namespace
    text: str
    kind: str
    subject: str | None
    attribute: str | None
    value: Any
    cardinality: Cardinality | None
    valid_from: datetime
    valid_to: datetime | None
    known_from: datetime
    known_to: datetime | None
    observed_at: datetime
    expires_at: datetime | None
    confidence: float
    trust: Trust
    asserted_by: str
    extractor: str | None
    hold: str
    closing: Closing | None
    reason: str | None
    supersedes: tuple[str, ...] = ()
    superseded_by: str | None = None
    provenance: tuple[Evidence, ...] = ()

    @property
    def is_held(self) -> bool:
        """Whether it is believed now and not kept apart."""
        return self.known_to is None and not self.hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of one draft: the assertion that holds it now, and those whose belief it ended."""

    assertion_id: str
    disposition: Disposition
    superseded: tuple[str, ...] = ()
    hold: str = ""
