"""Clauses: sentences that bind a party or wait for one, each with its polarity."""

from enum import StrEnum

import msgspec

__all__ = ["Clause", "ClauseClass"]


class ClauseClass(StrEnum):
    """What a clause does to the conversation; the words are those of the ledger."""

    CONSTRAINT = "constraint"
    DECISION = "decision"
    COMMITMENT = "commitment"
    OPEN_QUESTION = "open_question"
    CORRECTION = "correction"


class Clause(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One sentence with a cue. `start` and `end` are offsets in code points.

    `canon` is the sentence without differences of case, width and blanks; `negative` says that it denies or forbids.
    """

    cls: ClauseClass
    start: int
    end: int
    canon: str
    negative: bool
