"""What the database disposes: whether a proposed row may answer a question. Pure; the last word before an answer."""

from dataclasses import dataclass

from memory.assertion import Closing
from memory.filters import Filter
from memory.instants import from_us, to_us
from memory.provenance import Trust
from memory.recall import Include, Question, Withheld
from memory.scope import Namespace

__all__ = ["Held", "verdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The columns of a row that decide, and those that ranking reads."""

    assertion_id: str
    number: int
    tenant_id: str
    namespace: Namespace
    kind: str
    subject_key: str | None
    attribute_key: str | None
    trust: Trust
    confidence: float
    speaker: str | None
    thread_ref: str | None
    run_ref: str | None
    session: str | None
    previous_id: str | None
    says_when: bool
    hold: str
    closing: str | None
    valid_from: int
    valid_to: int
    known_from: int
    known_to: int
    observed_at: int
    expires_at: int


def verdict(row: Held, question: Question) -> Withheld | None:
    """Why `row` is no answer to `question`; None when it is one."""
    if not question.scope.covers(row.tenant_id, row.namespace):
        return Withheld.OUT_OF_SCOPE
    if row.hold:
        return Withheld.QUARANTINED
    if row.expires_at <= to_us(question.asked_at):
        return Withheld.EXPIRED
    if (ended := _belief(row, question)) is not None:
        return ended
    if question.include is Include.CURRENT and not row.valid_from <= question.valid_us < row.valid_to:
        return Withheld.NOT_VALID_THEN
    return None if _passes(row, question.filter) else Withheld.FILTERED


def _belief(row: Held, question: Question) -> Withheld | None:
    known = question.known_us
    if known < row.known_from:
        return Withheld.NOT_KNOWN_THEN
    if known < row.known_to:
        return None
    if row.closing == Closing.SUPERSEDED:
        return None if question.include is Include.ALL else Withheld.SUPERSEDED
    return Withheld.RETRACTED


def _passes(row: Held, given: Filter) -> bool:
    asked: tuple[tuple[frozenset[str] | frozenset[Trust] | None, object], ...] = (
        (given.kind, row.kind),
        (given.subject, row.subject_key),
        (given.attribute, row.attribute_key),
        (given.trust, row.trust),
        (given.actor, row.speaker),
        (given.thread_ref, row.thread_ref),
        (given.run_ref, row.run_ref),
    )
    return all(values is None or value in values for values, value in asked) and _bounds(row, given)


def _bounds(row: Held, given: Filter) -> bool:
    at = from_us(row.observed_at)
    return (
        (given.confidence_min is None or row.confidence >= given.confidence_min)
        and (given.observed_from is None or at >= given.observed_from)
        and (given.observed_to is None or at < given.observed_to)
    )
