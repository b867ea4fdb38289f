"""Memories as they are shown: statements with both their time axes, and the moments they rest on."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

from threadmark.memory import Answer, Answers, Assertion, Closing, Erasure, Evidence, Verdict

__all__ = [
    "Explanation",
    "Recalled",
    "Remembered",
    "ShownAnswer",
    "ShownErasure",
    "ShownMemory",
    "ShownSource",
    "ShownVerdict",
    "answers_to_wire",
    "erasure_to_wire",
    "memory_to_wire",
    "source_to_wire",
    "verdicts_to_wire",
]

MemoryStatus = Literal["current", "quarantined", "superseded", "retracted", "undone"]


class ShownSource(Struct, kw_only=True):
    """A moment that a memory rests on. `seq` is the journal's; `char_from` and `char_to` count code points."""

    evidence_id: str
    role: str
    thread_ref: str | None
    run_ref: str | None
    seq: int | None
    message_ref: str | None
    actor: str | None
    at: datetime | None
    char_from: int | None
    char_to: int | None
    content_hash: str | None
    quote: str | None
    trust: str
    asserted_by: str
    extractor: str | None
    observed_at: datetime
    recorded_at: datetime


class ShownMemory(Struct, kw_only=True):
    """A statement: held true over [valid_from, valid_to), believed over [known_from, known_to); null is open.

    `hold` says why a quarantined one waits for approval; `reason` why a retracted one was given up.
    """

    memory_id: str
    namespace: list[str]
    text: str
    kind: str
    subject: str | None
    attribute: str | None
    value: Any
    cardinality: str | None
    status: MemoryStatus
    valid_from: datetime
    valid_to: datetime | None
    known_from: datetime
    known_to: datetime | None
    observed_at: datetime
    expires_at: datetime | None
    confidence: float
    trust: str
    asserted_by: str
    extractor: str | None
    hold: str | None
    reason: str | None
    supersedes: list[str]
    superseded_by: str | None
    provenance: list[ShownSource]


class ShownAnswer(Struct, kw_only=True):
    """A memory that answers: its score, and `because`: the part of every signal in it."""

    memory_id: str
    text: str
    score: float
    because: dict[str, float]
    namespace: list[str]
    kind: str
    subject: str | None
    attribute: str | None
    value: Any
    status: MemoryStatus
    trust: str
    confidence: float
    valid_from: datetime
    valid_to: datetime | None
    known_from: datetime
    known_to: datetime | None
    superseded_by: str | None
    provenance: list[ShownSource]


class Explanation(Struct, kw_only=True):
    """The anchors of a recall and what answered it. `known_at` null: everything that is known."""

    asked_at: datetime
    valid_at: datetime
    known_at: datetime | None
    recipe: str
    index_answered: bool


class Recalled(Struct, kw_only=True):
    """Answers, best first. `withheld` counts by reason what was found and may not answer."""

    recall_id: str
    answers: list[ShownAnswer]
    withheld: dict[str, int]
    explanation: Explanation | None = None


class ShownVerdict(Struct, kw_only=True):
    """What became of an item, and the memories whose belief it ended. `hold` says why it is quarantined."""

    memory_id: str
    status: Literal["added", "duplicate", "superseded", "quarantined"]
    superseded: list[str]
    hold: str | None


class Remembered(Struct):
    """What became of each item, in their order."""

    items: list[ShownVerdict]


class ShownErasure(Struct, kw_only=True):
    """An erasure: what it removed so far, by store; `entries` are those of the index. A dry run has no id."""

    erasure_id: str | None
    status: Literal["dry_run", "running", "done"]
    counts: dict[str, int]
    created_at: datetime
    done_at: datetime | None


def memory_to_wire(held: Assertion) -> ShownMemory:
    """The memory, with everything that is known of it."""
    return ShownMemory(
        memory_id=held.assertion_id,
        namespace=list(held.namespace),
        text=held.text,
        kind=held.kind,
        subject=held.subject,
        attribute=held.attribute,
        value=held.value,
        cardinality=None if held.cardinality is None else held.cardinality.value,
        status=_status_of(held),
        valid_from=held.valid_from,
        valid_to=held.valid_to,
        known_from=held.known_from,
        known_to=held.known_to,
        observed_at=held.observed_at,
        expires_at=held.expires_at,
        confidence=held.confidence,
        trust=held.trust.value,
        asserted_by=held.asserted_by,
        extractor=held.extractor,
        hold=held.hold or None,
        reason=held.reason,
        supersedes=list(held.supersedes),
        superseded_by=held.superseded_by,
        provenance=[source_to_wire(each) for each in held.provenance],
    )


def source_to_wire(source: Evidence) -> ShownSource:
    """The moment."""
    origin = source.origin
    return ShownSource(
        evidence_id=source.evidence_id,
        role=source.role.value,
        thread_ref=origin.thread_ref,
        run_ref=origin.run_ref,
        seq=origin.seq,
        message_ref=origin.message_ref,
        actor=origin.actor,
        at=origin.at,
        char_from=origin.char_from,
        char_to=origin.char_to,
        content_hash=origin.content_hash,
        quote=origin.quote,
        trust=source.trust.value,
        asserted_by=source.asserted_by,
        extractor=source.extractor,
        observed_at=source.observed_at,
        recorded_at=source.recorded_at,
    )


def answers_to_wire(answers: Answers, *, explain: bool) -> Recalled:
    """The answers to a question."""
    asked = answers.question
    return Recalled(
        recall_id=answers.recall_id,
        answers=[_answer(each) for each in answers.answers],
        withheld={str(reason): count for reason, count in answers.withheld.items()},
        explanation=Explanation(
            asked_at=asked.asked_at,
            valid_at=asked.valid_at or asked.asked_at,
            known_at=asked.known_at,
            recipe=answers.recipe,
            index_answered=answers.index_answered,
        )
        if explain
        else None,
    )


def verdicts_to_wire(verdicts: Sequence[Verdict]) -> Remembered:
    """What became of drafts."""
    return Remembered(
        [
            ShownVerdict(
                memory_id=each.assertion_id,
                status=each.disposition.value,
                superseded=list(each.superseded),
                hold=each.hold or None,
            )
            for each in verdicts
        ]
    )


def erasure_to_wire(erasure: Erasure) -> ShownErasure:
    """The job, or the dry run of one."""
    status: Literal["dry_run", "running", "done"] = "done" if erasure.is_done else "running"
    return ShownErasure(
        erasure_id=erasure.erasure_id or None,
        status=status if erasure.erasure_id else "dry_run",
        counts=erasure.counts,
        created_at=erasure.created_at,
        done_at=erasure.done_at,
    )


def _answer(answer: Answer) -> ShownAnswer:
    held = answer.assertion
    return ShownAnswer(
        memory_id=held.assertion_id,
        text=held.text,
        score=answer.score,
        because=dict(answer.because),
        namespace=list(held.namespace),
        kind=held.kind,
        subject=held.subject,
        attribute=held.attribute,
        value=held.value,
        status=_status_of(held),
        trust=held.trust.value,
        confidence=held.confidence,
        valid_from=held.valid_from,
        valid_to=held.valid_to,
        known_from=held.known_from,
        known_to=held.known_to,
        superseded_by=held.superseded_by,
        provenance=[source_to_wire(each) for each in held.provenance],
    )


def _status_of(held: Assertion) -> MemoryStatus:
    if held.closing is not None and held.known_to is not None:
        return _ENDED[held.closing]
    return "quarantined" if held.hold else "current"


_ENDED: dict[Closing, MemoryStatus] = {
    Closing.SUPERSEDED: "superseded",
    Closing.RETRACTED: "retracted",
    Closing.UNDONE: "undone",
}
