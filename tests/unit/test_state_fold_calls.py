"""The fold of one call: intents, attempts, questions and doubts; and what becomes of it when another run begins."""

from typing import Any, Literal

import pytest

from tests.support.factories import NOW_US, Story, ai, asked, human, replied, returned, started
from threadmark.state import (
    Failure,
    StateUpdated,
    StepFailed,
    StepIntended,
    StepKey,
    WaitAnswered,
    WaitOpened,
    WaitSuperseded,
)

KEY = StepKey("tool-1-0")
FAILURE = Failure("Broken", "it broke")


def intended(key: StepKey = KEY, effect: str = "once") -> StepIntended:
    return StepIntended(step_key=key, effect=effect, idempotency_key="k")


def failed(key: StepKey = KEY, attempt: int = 1) -> StepFailed:
    return StepFailed(step_key=key, attempt=attempt, failure=FAILURE, retry_at_us=NOW_US + attempt)


def opened(kind: Literal["approval", "in_doubt"] = "approval", wait_id: str = "wait-1") -> WaitOpened:
    return WaitOpened(wait_id=wait_id, step_key=KEY, kind=kind, tool="look", arguments={}, shown_digest="d")


def answered(value: Any, wait_id: str = "wait-1") -> WaitAnswered:
    return WaitAnswered(wait_id=wait_id, step_key=KEY, value=value, answered_by="ann", answered_at_us=NOW_US)


def test_an_intent_is_known_with_its_fence() -> None:
    """An intent of an earlier lease is one whose effect may have happened."""
    story = Story.begun(replied(asked()))
    assert (story.call().intended_fence, story.call().intent_count) == (None, 0)

    story.tell(intended())

    assert (story.call().effect, story.call().intended_fence, story.call().intent_count) == ("once", 1, 1)


def test_a_failed_attempt_waits_until_its_next_one_is_due() -> None:
    """The failure, the due time and the count are kept with the call."""
    call = Story.begun(replied(asked()), failed()).call()

    assert (call.failure_count, call.retry_at_us, call.last_failure, call.outcome) == (1, NOW_US + 1, FAILURE, None)


def test_a_failed_once_call_needs_an_intent_of_its_own_again() -> None:
    """The tool said that nothing happened: the old intent is closed, so the next lease finds nothing in doubt."""
    call = Story.begun(replied(asked()), intended(), failed()).call()

    assert call.intended_fence is None


def test_a_failed_keyed_call_keeps_its_intent() -> None:
    """The same key serves every attempt, so it is recorded once."""
    call = Story.begun(replied(asked()), intended(effect="keyed"), failed()).call()

    assert call.intended_fence == 1


def test_attempts_count_failures_and_interrupted_turns() -> None:
    """A tool receives the ordinal of its attempt: failures before it, and turns that ended in the middle of it."""
    story = Story.begun(replied(asked()))
    attempts = [story.call().attempt(1)]
    story.tell(failed())
    story.next_turn()
    attempts.append(story.call().attempt(2))
    story.next_turn()
    attempts.append(story.call().attempt(3))
    story.tell(failed(attempt=3))
    story.next_turn()
    attempts.append(story.call().attempt(4))

    assert attempts == [1, 2, 3, 4]


def test_attempts_of_a_once_call_count_its_intents() -> None:
    """A turn that parked because of the doubt attempted nothing; only an intent is an attempt."""
    story = Story.begun(replied(asked()), intended()).next_turn(opened("in_doubt"))
    assert story.call().attempt(2) == 1

    story.next_turn(answered({"outcome": "did_not_happen"}), intended())

    assert story.call().attempt(3) == 2


def test_attempts_of_the_model_count_failures_and_interrupted_turns() -> None:
    """As for tools: the third attempt failed, so the next one is the fourth; a new call begins with 1 again."""
    story = Story.begun()
    numbers = []
    for entries in ([], [StepFailed(step_key=StepKey("model-1"), attempt=3, failure=FAILURE)], [replied(asked())]):
        story.next_turn(*entries)
        execution = story.state.execution
        assert execution is not None
        numbers.append(execution.model_attempt)

    assert numbers == [2, 4, 1]


def test_a_call_that_an_execution_took_over_begins_with_its_first_attempt() -> None:
    """Attempts of the execution that left it open are not its own."""
    story = Story.begun(replied(asked()), failed()).next_turn()
    story.run = 2
    story.tell(started(run_id="run-2", execution_id="execution-2", source="fork", from_seq=3))
    story.next_turn()

    (call,) = story.state.open_calls
    assert call.attempt(1) == 1


def test_a_question_is_open_until_it_is_answered() -> None:
    """The answer and who gave it stay with the call."""
    story = Story.begun(replied(asked()), opened())
    assert [(call.wait_id, call.wait_kind) for call in story.state.open_waits] == [("wait-1", "approval")]

    story.tell(answered({"approve": True}))

    assert story.state.open_waits == []
    assert (story.call().approval, story.call().answered_by) == ({"approve": True}, "ann")


def test_the_answer_to_a_doubt_holds_until_the_next_intent() -> None:
    """`did_not_happen` is an answer about one attempt; the next one may be in doubt again."""
    story = Story.begun(replied(asked()), intended(), opened("in_doubt"), answered({"outcome": "did_not_happen"}))
    assert (story.call().resolution, story.call().approval) == ({"outcome": "did_not_happen"}, None)

    story.tell(intended())

    assert (story.call().resolution, story.call().intent_count) == (None, 2)


def test_an_approval_survives_the_doubt_about_its_call() -> None:
    """What was approved once is not asked again because a worker died."""
    call = Story.begun(replied(asked()), opened(), answered(True), intended(), opened("in_doubt", "wait-2")).call()

    assert (call.approval, call.wait_kind, call.wait_count) == (True, "in_doubt", 2)


def test_a_question_that_fell_away_is_open_no_more() -> None:
    """The thread moved on without an answer; the call has none."""
    story = Story.begun(replied(asked()), opened(), WaitSuperseded(wait_id="wait-1", step_key=KEY))

    assert story.state.open_waits == []
    assert story.call().approval is None


def test_a_run_of_the_same_execution_carries_its_calls_on() -> None:
    """An answer comes as a new run: approvals, intents and counts are those of the execution."""
    story = Story.begun(replied(asked()), opened())
    story.run, story.fence = 2, 2
    story.tell(started(run_id="run-2", source="resume"), answered(True))

    execution = story.state.execution
    assert execution is not None
    assert (execution.run_id, execution.model_count, execution.attempt) == ("run-2", 1, 0)
    assert story.call().approval is True


def test_a_run_of_another_execution_asks_again_for_what_was_left_open() -> None:
    """An approval is for the call of the execution that asked; a fork asks anew, under a key of its own."""
    story = Story.begun(replied(asked()), opened(), answered(True), intended())
    story.run = 2
    story.tell(started(run_id="run-2", execution_id="execution-2", source="fork", from_seq=3))

    (call,) = story.state.open_calls
    assert call.call == asked()
    assert (call.approval, call.intended_fence, call.wait_count, call.failure_count) == (None, None, 0, 0)


def test_calls_that_another_execution_took_over_never_share_a_key_with_its_own() -> None:
    """Two steps of one key would be one step to the tool's other side: the second effect would not happen."""
    story = Story.begun(replied(asked("look", "call-1"), asked("look", "call-2")))
    story.run = 2
    story.tell(started(run_id="run-2", execution_id="execution-2", source="fork", from_seq=3))
    taken_over = list(story.state.calls)

    for key in taken_over:
        story.tell(returned(key, call_id=story.state.calls[key].call.id))
    story.tell(replied(asked("look", "call-3"), asked("look", "call-4"), ordinal=1))

    assert set(taken_over).isdisjoint(story.state.calls)


def test_calls_from_outside_keep_their_keys_in_a_copy_of_the_thread() -> None:
    """A copy renumbers the entries that it sees, and must still fold: no key depends on the seq of an entry."""
    written = StateUpdated(messages=(ai("", asked("look", "call-8"), message_id="ai-8"),))
    story = Story.begun(replied(), written)
    (key,) = story.state.calls

    shorter = Story(started(human()), replied(), written)

    assert list(shorter.state.calls) == [key]


def test_a_message_of_a_person_ends_what_was_open() -> None:
    """New input goes to the model; results for the calls before it were noted by then."""
    story = Story.begun(replied(asked())).tell(returned("tool-1-0", None, outcome="cancelled"))
    story.run = 2
    state = story.tell(started(human("more", "h2"), run_id="run-2", execution_id="execution-2")).state

    assert (state.next, state.calls) == ("model", {})
    assert [message.type for message in state.messages] == ["human", "ai", "tool", "human"]


@pytest.mark.parametrize(
    ("arguments", "kept"), [({"cents": 100}, True), ({"cents": 10}, False), ({"cents": 100.0}, False)]
)
def test_an_approval_is_for_the_arguments_that_were_shown(arguments: dict[str, Any], kept: bool) -> None:
    """A call that is written over with other arguments is another call, which nobody has approved."""
    story = Story.begun(replied(asked("pay", cents=100)), opened(), answered(True))
    message = ai("hi", asked("pay", **arguments))

    (call,) = story.tell(StateUpdated(messages=(message,))).state.open_calls

    assert call.call.arguments == arguments
    assert (call.approval is True) == kept
