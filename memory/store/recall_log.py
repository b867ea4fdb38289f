"""The log of recalls: who asked what, and which assertions it was shown."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from threadmark.memory.model.instants import from_us, to_us
from threadmark.memory.model.scope import Namespace
from threadmark.memory.model.values import canonical, load
from threadmark.memory.recall.question import Answers
from threadmark.memory.store.job_tables import recall_log

__all__ = ["Access", "forget_before", "of_run", "record"]


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


def record(connection: Connection, answers: Answers) -> None:
    """Keep what was asked and answered; the answers' texts stay where they are."""
    asked = answers.question
    question = {
        "text": asked.text,
        "include": asked.include,
        "valid_at": None if asked.valid_at is None else asked.valid_at.isoformat(),
        "known_at": None if asked.known_at is None else asked.known_at.isoformat(),
    }
    connection.execute(
        insert(recall_log).values(
            recall_id=answers.recall_id,
            tenant_id=asked.scope.tenant_id,
            namespace=canonical(list(asked.scope.namespace)),
            thread_ref=asked.thread_ref,
            run_ref=asked.run_ref,
            asked_at=to_us(asked.asked_at),
            question=canonical(question),
            answers=canonical([[each.assertion.assertion_id, each.score] for each in answers.answers]),
            withheld=canonical(dict(answers.withheld)),
            recipe=answers.recipe,
        )
    )


def of_run(connection: Connection, tenant_id: str, run_ref: str) -> list[Access]:
    """The recalls of a run, in the order in which they were answered."""
    query = (
        select(recall_log)
        .where(recall_log.c.tenant_id == tenant_id, recall_log.c.run_ref == run_ref)
        .order_by(recall_log.c.number)
    )
    return [_access(row._asdict()) for row in connection.execute(query)]


def forget_before(connection: Connection, instant: datetime) -> int:
    """Drop the recalls from before an instant; how many."""
    return connection.execute(delete(recall_log).where(recall_log.c.asked_at < to_us(instant))).rowcount


def _access(row: Mapping[str, Any]) -> Access:
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
