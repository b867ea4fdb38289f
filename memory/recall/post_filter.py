"""What the database disposes: whether a proposed row may answer a question. Pure; the last word before an answer."""

from dataclasses import dataclass
from typing import NamedTuple

from threadmark.memory.model.assertion import Closing
from threadmark.memory.model.filters import Filter
from threadmark.memory.model.instants import from_us, to_us
from threadmark.memory.model.question import Include, Question, Withheld
from threadmark.memory.model.scope import Namespace, Scope

__all__ = ["AdmissibilityFilter", "Held"]


class Held(NamedTuple):
    """The columns of a row that decide, and those that ranking reads. Instants in microseconds.

    A tuple, in the order in which the statement selects: a recall makes hundreds of them.
    """

    assertion_id: str
    number: int
    tenant_id: str
    namespace_id: int
    kind: str
    subject_key: str | None
    attribute_key: str | None
    trust: str
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


@dataclass(frozen=True, slots=True)
class AdmissibilityFilter:
    """A question's conditions, spelled out once for all of its rows."""

    scope: Scope
    asked: int
    valid: int
    known: int
    include: Include
    filter: Filter | None

    @classmethod
    def of(cls, question: Question) -> "AdmissibilityFilter":
        """The bench that judges for `question`."""
        return cls(
            question.scope,
            to_us(question.asked_at),
            question.valid_us,
            question.known_us,
            question.include,
            None if question.filter.is_empty else question.filter,
        )

    def check(self, row: Held, namespace: Namespace) -> Withheld | None:
        """Why `row` of `namespace` is no answer; None when it is one."""
        if not self.scope.covers(row.tenant_id, namespace):
            return Withheld.OUT_OF_SCOPE
        if row.hold:
            return Withheld.QUARANTINED
        if row.expires_at <= self.asked:
            return Withheld.EXPIRED
        if (ended := self._belief(row)) is not None:
            return ended
        if self.include is Include.CURRENT and not row.valid_from <= self.valid < row.valid_to:
            return Withheld.NOT_VALID_THEN
        return None if self.filter is None or _passes(row, self.filter) else Withheld.FILTERED

    def _belief(self, row: Held) -> Withheld | None:
        if self.known < row.known_from:
            return Withheld.NOT_KNOWN_THEN
        if self.known < row.known_to:
            return None
        if row.closing == Closing.SUPERSEDED:
            return None if self.include is Include.ALL else Withheld.SUPERSEDED
        return Withheld.RETRACTED


def _passes(row: Held, given: Filter) -> bool:
    asked: tuple[tuple[frozenset[str] | None, str | None], ...] = (
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
