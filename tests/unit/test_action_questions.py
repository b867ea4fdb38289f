"""Approvals and doubts: what a person is asked, and what follows from each answer."""

from typing import Any, Literal

import pytest

from tests.support.factories import Story, asked, replied, returned, started
from tests.support.next_actions import FAILURE, LATER_US, act, an_agent, answered, intended, only, outcomes
from threadmark.state import (
    CancelAction,
    ParkReason,
    RunOutcome,
    RunStatus,
    StepFailed,
    StepIntended,
    StepKey,
    ThreadStatus,
    ToolReturned,
    WaitOpened,
    WaitSuperseded,
)
from threadmark.workers.agents.agent import ChatAgent
from threadmark.workers.turn.action import Note, Park, Perform, Settle

WAITING = Settle(
    RunOutcome(status=RunStatus.SUCCESS, thread_status=ThreadStatus.INTERRUPTED, reason="waiting for a person")
)


def opened(key: str, kind: Literal["approval", "in_doubt"] = "approval") -> WaitOpened:
    return WaitOpened(
        wait_id=f"wait-{key}", step_key=StepKey(key), kind=kind, tool="refund", arguments={}, shown_digest="d"
    )


def in_doubt(*calls: Any) -> tuple[Story, WaitOpened]:
    """A once call whose worker died after its intent, and the question that follows."""
    story = Story.begun(replied(*(calls or (asked("pay"),))), intended()).next_turn()
    wait = only(act(story))
    assert isinstance(wait, WaitOpened)
    return story.tell(wait), wait


def test_a_tool_that_needs_approval_asks_first() -> None:
    """Nothing is performed, nothing is intended; the run ends and the thread waits for a person."""
    story = Story.begun(replied(asked("refund", cents=100)))

    wait = only(act(story))

    assert isinstance(wait, WaitOpened)
    assert (wait.kind, wait.tool, wait.arguments) == ("approval", "refund", {"cents": 100})
    assert act(story.tell(wait)) == WAITING


def test_what_was_shown_is_sealed_with_the_question() -> None:
    """The digest covers tool and arguments: an approval of one amount does not approve another (C25)."""
    digests = set()
    for call in (asked("refund", cents=100), asked("refund", cents=10), asked("peek", order="100")):
        wait = only(act(Story.begun(replied(call))))
        assert isinstance(wait, WaitOpened)
        digests.add(wait.shown_digest)

    assert len(digests) == 3


@pytest.mark.parametrize("answer", [True, {"approve": True}, {"approve": True, "reason": "fine"}])
def test_an_approved_call_is_made(answer: object) -> None:
    """First its intent, as the effect demands; then the call."""
    story = Story.begun(replied(asked("refund")))
    wait = only(act(story))
    story.tell(wait, answered(wait, answer))

    intent = only(act(story))

    assert isinstance(intent, StepIntended)
    assert isinstance(act(story.tell(intent)), Perform)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (False, "A person refused this call."),
        ({"approve": False}, "A person refused this call."),
        ({"approve": False, "reason": "too much"}, "A person refused this call: too much"),
        ({"approve": "true"}, "A person refused this call."),
        ({"approve": 1}, "A person refused this call."),
        ("yes", "A person refused this call."),
        (1, "A person refused this call."),
        ([True], "A person refused this call."),
        ({}, "A person refused this call."),
    ],
)
def test_whatever_is_not_a_plain_yes_refuses(answer: object, message: str) -> None:
    """The call is not made, and its result says so, with the reason if there is one."""
    story = Story.begun(replied(asked("refund")))
    wait = only(act(story))
    story.tell(wait, answered(wait, answer))

    result = only(act(story))

    assert isinstance(result, ToolReturned)
    assert (result.outcome, result.resolved_by) == ("refused", "ann")
    assert result.failure is not None
    assert result.failure.message == message


@pytest.mark.parametrize("first", [0, 1])
def test_the_answers_to_parallel_questions_reach_their_own_calls(first: int) -> None:
    """In whichever order they come: the file is kept and the payment is done (C25)."""
    story = Story.begun(replied(asked("peek", "c1", order="a"), asked("refund", "c2", cents=10)))
    asked_both = act(story)
    assert isinstance(asked_both, Note)
    waits = asked_both.entries
    answers = [answered(waits[0], False), answered(waits[1], True)]
    story.tell(*waits, answers[first], answers[1 - first])

    action = act(story)

    assert isinstance(action, Note)
    refused, intent = action.entries
    assert isinstance(refused, ToolReturned)
    assert (refused.call_id, refused.outcome) == ("c1", "refused")
    assert isinstance(intent, StepIntended)
    assert intent.step_key == "tool-1-1"


def test_a_call_that_may_be_made_does_not_wait_for_its_neighbour_s_approval() -> None:
    """What needs no answer is performed; only then does the run end to wait."""
    story = Story.begun(replied(asked("look", "c1"), asked("refund", "c2")))
    wait = only(act(story))
    story.tell(wait)
    assert isinstance(act(story), Perform)

    assert act(story.tell(returned("tool-1-0", call_id="c1"))) == WAITING


def test_one_answer_of_two_lets_its_own_call_go_on() -> None:
    """The other question stays open."""
    story = Story.begun(replied(asked("peek", "c1"), asked("refund", "c2")))
    action = act(story)
    assert isinstance(action, Note)
    story.tell(*action.entries, answered(action.entries[0], True))

    performed = act(story)

    assert isinstance(performed, Perform)
    assert [call.call.id for call in performed.calls] == ["c1"]
    assert act(story.tell(returned("tool-1-0", call_id="c1"))) == WAITING


def test_a_once_call_that_was_left_in_the_middle_is_in_doubt() -> None:
    """It never runs again by itself: the run parks until somebody says what became of it."""
    story, wait = in_doubt()

    assert (wait.kind, wait.tool) == ("in_doubt", "pay")
    assert act(story) == Park(RunOutcome.of_park(ParkReason.IN_DOUBT))


def test_a_once_call_is_not_in_doubt_under_the_lease_that_intended_it() -> None:
    """The intent is on disk, the call is about to be made by this very turn."""
    assert isinstance(act(Story.begun(replied(asked("pay")), intended())), Perform)


def test_a_doubt_that_is_settled_as_happened_gives_the_call_its_result() -> None:
    """The tool is not called; the person who settled it is named."""
    story, wait = in_doubt()

    result = only(act(story.tell(answered(wait, {"outcome": "happened", "result": {"paid": 1}}))))

    assert isinstance(result, ToolReturned)
    assert (result.outcome, result.value, result.resolved_by) == ("ok", {"paid": 1}, "ann")


def test_a_doubt_that_is_settled_as_not_happened_lets_the_call_be_made() -> None:
    """With an intent of its own; a crash in the middle of that one is a doubt again, with another question."""
    story, wait = in_doubt()
    story.tell(answered(wait, {"outcome": "did_not_happen"}))
    intent = only(act(story))
    assert isinstance(intent, StepIntended)
    assert isinstance(act(story.tell(intent)), Perform)

    again = only(act(story.next_turn()))

    assert isinstance(again, WaitOpened)
    assert (again.kind, again.wait_id == wait.wait_id) == ("in_doubt", False)


def test_an_approval_holds_for_the_attempt_after_a_doubt() -> None:
    """The person who approved is not asked a second time because a worker died."""
    story = Story.begun(replied(asked("refund")))
    wait = only(act(story))
    story.tell(wait, answered(wait, True), intended()).next_turn()
    doubt = only(act(story))
    story.tell(doubt, answered(doubt, {"outcome": "did_not_happen"}))

    assert isinstance(only(act(story)), StepIntended)


@pytest.mark.parametrize("agent", [ChatAgent(name="chat"), an_agent()])
def test_a_deploy_does_not_settle_a_doubt(agent: ChatAgent) -> None:
    """The tool is gone, or takes other arguments now: what the old one did is unknown all the same."""
    story = Story.begun(replied(asked("pay", amount="1 euro")), intended()).next_turn()

    wait = only(act(story, agent))

    assert isinstance(wait, WaitOpened)
    assert wait.kind == "in_doubt"
    story.tell(wait, answered(wait, {"outcome": "happened", "result": 1}))
    assert outcomes(act(story, agent)) == ["ok"]


def test_a_call_that_did_not_happen_and_cannot_be_made_any_more_is_an_error() -> None:
    """The doubt is settled, and the tool is gone: the result says so."""
    story, wait = in_doubt()
    story.tell(answered(wait, {"outcome": "did_not_happen"}))

    assert outcomes(act(story, ChatAgent(name="chat"))) == ["error"]


def test_a_retry_does_not_wait_for_the_doubt_of_its_neighbour() -> None:
    """The run comes back for what it can do itself; the question stays open meanwhile."""
    story, _ = in_doubt(asked("pay", "c1"), asked("look", "c2"))
    failed = StepFailed(step_key=StepKey("tool-1-1"), attempt=1, failure=FAILURE, retry_at_us=LATER_US + 5)

    assert act(story.tell(failed)) == Park(RunOutcome.of_park(ParkReason.BACKOFF, LATER_US + 5))
    assert isinstance(act(story, now_us=LATER_US + 5), Perform)


def test_a_run_that_ends_closes_its_questions() -> None:
    """Each open call gets exactly one result; each open question falls away (C37)."""
    calls = [asked("pay", "c1"), asked("refund", "c2"), asked("look", "c3")]
    story = Story.begun(replied(*calls), intended()).next_turn()
    questions = act(story)
    assert isinstance(questions, Note)
    story.tell(*questions.entries)

    action = act(story, cancel=CancelAction.INTERRUPT)

    assert isinstance(action, Note)
    fallen = [entry.wait_id for entry in action.entries if isinstance(entry, WaitSuperseded)]
    results = [entry.call_id for entry in action.entries if isinstance(entry, ToolReturned)]
    assert fallen == [wait.wait_id for wait in questions.entries if isinstance(wait, WaitOpened)]
    assert results == ["c1", "c2", "c3"]
    assert outcomes(action) == ["unknown", "cancelled", "cancelled"]
    assert story.tell(*action.entries).state.open_calls == []


@pytest.mark.parametrize(
    ("resolution", "outcome"),
    [({"outcome": "happened", "result": 1}, "ok"), ({"outcome": "did_not_happen"}, "cancelled")],
)
def test_what_a_person_settled_is_not_unknown_again(resolution: dict[str, Any], outcome: str) -> None:
    """A run that ends before it could act on the answer ends its call by the answer."""
    story, wait = in_doubt()
    story.tell(answered(wait, resolution))

    assert outcomes(act(story, cancel=CancelAction.INTERRUPT)) == [outcome]


def test_a_continuing_run_of_the_same_execution_keeps_the_questions() -> None:
    """A second run without an answer finds the thread as it was: waiting."""
    story = Story.begun(replied(asked("refund")), opened("tool-1-0"))
    story.run = 2

    assert act(story.tell(started(run_id="run-2", source="continue")), number=2) == WAITING
