"""Which questions an answer is for: one rule, whatever way the answer comes in."""

from typing import Any

import pytest

from threadmark.state import AlreadyAnswered, AskedByAnother, Conflict, ExecutionId, NothingToResume, Refused, StepKey
from threadmark.state.runs.resume import Question, answers_to

EXECUTION = ExecutionId("execution")


def a_question(wait_id: str, **changes: Any) -> Question:
    """An open approval that the assistant `pay` asked for."""
    given: dict[str, Any] = {"kind": "approval", "status": "open", "assistant": "pay", **changes}
    return Question(wait_id=wait_id, step_key=StepKey(f"tool-1-{wait_id}"), execution_id=EXECUTION, **given)


def chosen(value: Any, *questions: Question, assistant: str = "pay") -> dict[str, Any]:
    """The answers by question."""
    answers, execution_id = answers_to("thread", value, questions, assistant)
    assert execution_id == EXECUTION
    return answers


@pytest.mark.parametrize("value", [True, False, {"approve": True}, {"approve": False, "reason": "no"}])
def test_a_bare_answer_is_for_the_one_open_question(value: Any) -> None:
    """Closed ones and steps in doubt beside it do not make it ambiguous."""
    others = a_question("old", status="answered"), a_question("doubt", kind="in_doubt")

    assert chosen(value, a_question("one"), *others) == {"one": value}


def test_an_object_of_ids_answers_those_that_it_names() -> None:
    """And no other."""
    assert chosen({"two": False}, a_question("one"), a_question("two")) == {"two": False}


@pytest.mark.parametrize("status", ["answered", "superseded"])
def test_an_answer_to_a_closed_question_is_never_one_to_another(status: str) -> None:
    """The object is no bare answer to the question that is still open; the refusal says which that is."""
    with pytest.raises(AlreadyAnswered, match=rf"one is {status}.*Open questions: two\."):
        chosen({"one": True}, a_question("one", status=status), a_question("two"))


@pytest.mark.parametrize("value", [{"foreign": True}, {"foreign": True, "two": True}])
def test_a_question_that_the_thread_never_asked_is_refused_with_those_that_it_asks(value: Any) -> None:
    """Nothing is answered then, not even what is named beside it."""
    with pytest.raises(NothingToResume, match=r"never asked question foreign. Open questions: one, two\."):
        chosen(value, a_question("one"), a_question("two"))


def test_where_nothing_is_open_the_refusal_says_so() -> None:
    """For a bare answer, and for one that names its question."""
    closed = a_question("one", status="answered")
    with pytest.raises(NothingToResume, match="has no open question"):
        chosen(True, closed)
    with pytest.raises(AlreadyAnswered, match="No question is open"):
        chosen({"one": True}, closed)


def test_one_answer_for_two_questions_is_refused() -> None:
    """Nobody knows which one is meant."""
    with pytest.raises(Refused, match="one, two"):
        chosen(True, a_question("one"), a_question("two"))


def test_a_step_in_doubt_is_resolved_and_not_answered() -> None:
    """The refusal says where."""
    with pytest.raises(Conflict, match="steps/tool-1-one/resolve"):
        chosen({"one": True}, a_question("one", kind="in_doubt"))


@pytest.mark.parametrize("value", [True, {"one": True}])
def test_another_assistant_cannot_answer_for_the_one_that_asked(value: Any) -> None:
    """The refusal names the assistant that asked."""
    with pytest.raises(AskedByAnother, match="Resume with assistant_id 'pay'"):
        chosen(value, a_question("one"), assistant="chat")
