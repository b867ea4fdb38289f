"""Where an assertion comes from: the moment, who spoke, how far the speaker is trusted; and who changes a belief."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from threadmark.memory.errors import Refused
from threadmark.memory.model.instants import to_us
from threadmark.memory.model.values import canonical, check_code_points, check_label, check_text

__all__ = ["Change", "Evidence", "Origin", "Role", "Trust", "by", "quote_hash"]

SEQ_MAX = 2**53 - 1


class Trust(StrEnum):
    """How far the speaker of a moment is trusted, from most to least."""

    OPERATOR = "operator"
    USER = "user"
    AGENT = "agent"
    TOOL = "tool"
    WEB = "web"

    @property
    def is_untrusted(self) -> bool:
        """Whether the author of the text is not a party to the conversation."""
        return self in {Trust.TOOL, Trust.WEB}


class Role(StrEnum):
    """What a moment does for an assertion."""

    SUPPORTS = "supports"
    CORRECTS = "corrects"
    CONFIRMS = "confirms"
    RETRACTS = "retracts"
    RESTORES = "restores"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A moment, as its owner names it. Memory compares these values and never interprets them.

    `seq` is the journal's; `char_from` and `char_to` (half-open, in code points) mark the quoted text in the message.
    """

    thread_ref: str | None = None
    run_ref: str | None = None
    seq: int | None = None
    message_ref: str | None = None
    actor: str | None = None
    at: datetime | None = None
    content_hash: str | None = None
    char_from: int | None = None
    char_to: int | None = None
    quote: str | None = None

    def __post_init__(self) -> None:
        for name in ("thread_ref", "run_ref", "message_ref", "actor", "content_hash"):
            if (value := getattr(self, name)) is not None:
                check_label(value, f"source.{name}")
        for name in ("seq", "char_from", "char_to"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or not 0 <= value <= SEQ_MAX):
                raise Refused(f"source.{name}", f"is not an integer from 0 to {SEQ_MAX}")
        if (self.char_from is None) != (self.char_to is None) or (self.char_from or 0) > (self.char_to or 0):
            raise Refused("source.char_from", "and char_to do not mark a span")
        if self.quote is not None:
            check_text(self.quote, "source.quote")
            check_code_points(self.quote, "source.quote")

    @property
    def key(self) -> str | None:
        """The same for every report of one moment; None when nothing names the moment.

        The actor and the clock do not name a moment: two statements of one actor are two moments.
        """
        if self.thread_ref is None and self.run_ref is None and self.message_ref is None:
            return None
        names = [self.thread_ref, self.run_ref, self.seq, self.message_ref, self.char_from, self.char_to]
        return hashlib.sha256(canonical(names).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One source of an assertion; append-only."""

    evidence_id: str
    role: Role
    origin: Origin
    trust: Trust
    observed_at: datetime
    recorded_at: datetime
    asserted_by: str
    extractor: str | None = None


def quote_hash(text: str) -> str:
    """The content hash of a quoted text."""
    return hashlib.sha256(text.encode()).hexdigest()


class Change:
    """Who changes a belief, and when."""

    __slots__ = ("by", "now", "trust")

    def __init__(self, *, by: str, now: datetime, trust: Trust = Trust.USER) -> None:
        self.by = by
        self.now = now
        self.trust = trust


def by(change: Change) -> dict[str, Any]:
    """The change as the arguments of a unit of work."""
    return {"by": change.by, "trust": change.trust, "now": to_us(change.now, "now")}
