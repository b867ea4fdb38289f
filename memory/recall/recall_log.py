"""The log of recalls: who asked what, and which assertions it was shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from threadmark.memory.model.instants import from_us, to_us
from threadmark.memory.model.question import Answers
from threadmark.memory.model.scope import Namespace
from threadmark.memory.model.values import canonical, load
from threadmark.memory.store.job_tables import recall_log, tombstone
from threadmark.memory.store.pending import published
from threadmark.memory.store.statements import chunks

__all__ = ["Access", "access_of", "forget_before", "of_run", "record_all", "row_of"]

#: Rows that one transaction forgets; others write in between.
FORGET_COUNT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One recall that was answered."""

    recall_id: str
    namespace: Namespace
    thread_ref: str | None
    run_ref: str | None
    asked_at: datetime
    question: Mapping[str, Any]  #: text, valid_at, known_at, include
    answers: tuple[tuple[str, float], ...]  #: assertion id and score, best first
    withheld: Mapping[str, int]
    recipe: str


def row_of(answers: Answers) -> dict[str, Any]:
    """The row of what was asked and answered; the answers' texts stay where they are."""
    asked = answers.question
    question = {
        "text": asked.text,
        "include": asked.include,
        "valid_at": None if asked.valid_at is None else asked.valid_at.isoformat(),
        "known_at": None if asked.known_at is None else asked.known_at.isoformat(),
    }
    return {
        "recall_id": answers.recall_id,
        "tenant_id": asked.scope.tenant_id,
        "namespace": canonical(list(asked.scope.namespace)),
        "thread_ref": asked.thread_ref,
        "run_ref": asked.run_ref,
        "asked_at": to_us(asked.asked_at),
        "question": canonical(question),
        "answers": canonical([[each.assertion.assertion_id, each.score] for each in answers.answers]),
        "withheld": canonical(dict(answers.withheld)),
        "recipe": answers.recipe,
    }


def record_all(connection: Connection, batch: Sequence[Mapping[str, Any]]) -> int:
    """Keep recalls, except those whose answers were erased since: their questions often repeat it. How many are kept.

    Repeating it changes nothing.
    """
    shown = {row["recall_id"]: {each for each, _ in load(row["answers"])} for row in batch}
    erased: set[str] = set()
    for part in chunks(sorted(set().union(*shown.values()))):
        erased |= set(connection.scalars(select(tombstone.c.assertion_id).where(tombstone.c.assertion_id.in_(part))))
    ids = list(shown)
    known = set(connection.scalars(select(recall_log.c.recall_id).where(recall_log.c.recall_id.in_(ids))))
    kept = [dict(row) for row in batch if row["recall_id"] not in known and not shown[row["recall_id"]] & erased]
    if kept:
        connection.execute(insert(recall_log).inline(), kept)
    return len(kept)


def of_run(connection: Connection, tenant_id: str, run_ref: str) -> list[Access]:
    """The recalls of a run, in the order in which they were answered."""
    query = (
        select(recall_log)
        .where(recall_log.c.tenant_id == tenant_id, recall_log.c.run_ref == run_ref, published(recall_log))
        .order_by(recall_log.c.number)
    )
    return [access_of(row._asdict()) for row in connection.execute(query)]


def forget_before(connection: Connection, instant: datetime) -> int:
    """Drop the oldest recalls from before an instant, at most FORGET_COUNT; how many."""
    query = select(recall_log.c.number).where(recall_log.c.asked_at < to_us(instant)).limit(FORGET_COUNT)
    numbers = list(connection.scalars(query.order_by(recall_log.c.asked_at)))
    return connection.execute(delete(recall_log).where(recall_log.c.number.in_(numbers))).rowcount


def access_of(row: Mapping[str, Any]) -> Access:
    """The recall that a row keeps."""
    return Access(
        recall_id=row["recall_id"],
        namespace=tuple(load(row["namespace"])),
        thread_ref=row["thread_ref"],
        run_ref=row["run_ref"],
        asked_at=from_us(row["asked_at"]),
        question=load(row["question"]),
        answers=tuple((assertion_id, score) for assertion_id, score in load(row["answers"])),
        withheld=load(row["withheld"]),
        recipe=row["recipe"],
    )
