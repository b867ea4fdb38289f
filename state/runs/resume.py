"""Which questions an answer is for. Pure: the single rule, applied to rows that were read with the thread locked."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from threadmark.state.entries.ids import ExecutionId
from threadmark.state.errors import AlreadyAnswered, AskedByAnother, Conflict, NothingToResume, Refused

__all__ = ["ANSWER_KEYS", "Question", "Resume", "answers_to", "names_questions"]

#: Keys of an answer that is an object. An object without any of them maps question ids to answers.
ANSWER_KEYS = frozenset({"approve", "reason", "effect", "result"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Answers to the open approvals of a thread: one value, or a value per wait id."""

    value: Any
    actor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question that the thread asked, and the assistant whose run asked it."""

    wait_id: str
    kind: str
    status: str
    step_key: str
    execution_id: ExecutionId
    assistant: str

    @property
    def is_open_approval(self) -> bool:
        """Whether a resume can answer it."""
        return self.kind == "approval" and self.status == "open"


def names_questions(value: Any) -> bool:
    """Whether the value of a resume maps question ids to answers; any other value is itself an answer."""
    return isinstance(value, dict) and bool(value) and ANSWER_KEYS.isdisjoint(value)


def answers_to(
    thread_id: str, value: Any, questions: Sequence[Question], assistant: str
) -> tuple[dict[str, Any], ExecutionId]:
    """The answers by wait id, and the execution that asks.

    Raises NothingToResume, AlreadyAnswered, AskedByAnother, Conflict (a step in doubt), Refused (ambiguous).
    """
    by_id = {each.wait_id: each for each in questions}
    open_ids = tuple(sorted(each.wait_id for each in questions if each.is_open_approval))
    if names_questions(value):
        answers = dict(value)
        _refuse_unasked(thread_id, answers, by_id, open_ids)
    elif not open_ids:
        raise NothingToResume(thread_id)
    elif len(open_ids) == 1:
        answers = {open_ids[0]: value}
    else:
        raise Refused(
            "Several questions are open; resume with an object that maps an interrupt id to its answer: "
            + ", ".join(open_ids)
        )
    answered = [by_id[each] for each in answers]
    for each in answered:
        if each.assistant != assistant:
            raise AskedByAnother(each.wait_id, each.assistant, assistant)
    return answers, answered[0].execution_id


def _refuse_unasked(
    thread_id: str, wait_ids: Iterable[str], by_id: dict[str, Question], open_ids: tuple[str, ...]
) -> None:
    for wait_id in wait_ids:
        question = by_id.get(wait_id)
        if question is None:
            raise NothingToResume(thread_id, wait_id, open_ids)
        if question.kind != "approval":
            raise Conflict(
                f"Wait {wait_id} is a step in doubt: POST /runs/{{run_id}}/steps/{question.step_key}/resolve."
            )
        if question.status != "open":
            raise AlreadyAnswered(wait_id, question.status, open_ids)
