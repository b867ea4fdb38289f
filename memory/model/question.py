"""Recall: a question put to memory, and its ranked, explained answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from threadmark.memory.errors import Refused
from threadmark.memory.model.assertion import Assertion
from threadmark.memory.model.filters import Filter
from threadmark.memory.model.instants import FAR_US, to_us
from threadmark.memory.model.scope import Scope
from threadmark.memory.model.values import check_text

__all__ = ["COUNT_MAX", "QUESTION_LENGTH_MAX", "Answer", "Answers", "Include", "Question", "Withheld"]

COUNT_MAX = 200
QUESTION_LENGTH_MAX = 8_192


class Include(StrEnum):
    """Which beliefs may answer."""

    CURRENT = "current"  #: believed at `known_at` to be true at `valid_at`
    HISTORY = "history"  #: believed at `known_at`, whenever true
    ALL = "all"  #: also beliefs that ended by supersession; never retracted ones


class Withheld(StrEnum):
    """Why a proposed assertion is no answer."""

    OUT_OF_SCOPE = "out_of_scope"
    ERASED = "erased"  #: the index still had it; the database does not
    QUARANTINED = "quarantined"
    EXPIRED = "expired"
    RETRACTED = "retracted"
    SUPERSEDED = "superseded"
    NOT_KNOWN_THEN = "not_known_then"
    NOT_VALID_THEN = "not_valid_then"
    FILTERED = "filtered"
    OVER_BUDGET = "over_budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, of which scope, and from which point on the two time axes.

    `valid_at` defaults to `asked_at`, `known_at` to all that is known. Raises Refused for a blank text: it never means
    "everything".
    """

    text: str
    scope: Scope
    asked_at: datetime
    valid_at: datetime | None = None
    known_at: datetime | None = None
    include: Include = Include.CURRENT
    filter: Filter = field(default_factory=Filter)
    count_max: int = 10
    token_count_max: int | None = None
    thread_ref: str | None = None  #: of the caller; kept in the log of recalls
    run_ref: str | None = None

    def __post_init__(self) -> None:
        check_text(self.text, "query", QUESTION_LENGTH_MAX)
        if not isinstance(self.scope, Scope):
            raise Refused("scope", "is missing")
        if type(self.count_max) is not int or not 1 <= self.count_max <= COUNT_MAX:
            raise Refused("limit", f"is not an integer from 1 to {COUNT_MAX}")
        if self.token_count_max is not None and self.token_count_max < 1:
            raise Refused("token_count_max", "is not a positive integer")
        for name in ("asked_at", "valid_at", "known_at"):
            if (instant := getattr(self, name)) is not None:
                to_us(instant, name)

    @property
    def valid_us(self) -> int:
        """The instant on the axis of truth."""
        return to_us(self.valid_at or self.asked_at)

    @property
    def known_us(self) -> int:
        """The instant on the axis of belief; unless it is given, after all that was ever recorded.

        Not the asker's clock: two writes in one microsecond are recorded one after the other, ahead of any clock.
        """
        return FAR_US - 1 if self.known_at is None else to_us(self.known_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An assertion that answers, with its score and every signal's part of it."""

    assertion: Assertion
    score: float
    because: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The answers, best first, and what was proposed and withheld, counted by reason."""

    recall_id: str
    question: Question
    answers: tuple[Answer, ...]
    withheld: Mapping[Withheld, int]
    recipe: str
    index_answered: bool  #: False: the index was unavailable and the database answered alone
