"""The next action of a chat agent: a pure function of the folded journal, the agent and the clock."""

from typing import Any

import pytest

from tests.support.factories import NOW_US, Story, a_run, asked, human, replied, returned, started
from tests.support.memory_house import question as memory_question
from tests.support.next_actions import FAILURE, LATER_US, act, an_agent, intended, outcomes
from threadmark.memory import Refused
from threadmark.state import (
    ParkReason,
    RunOutcome,
    RunStatus,
    StepFailed,
    StepIntended,
    StepKey,
    ThreadStatus,
    ToolReturned,
    TurnStarted,
    fold,
)
from threadmark.workers.agents.agent import ChatAgent
from threadmark.workers.agents.memory_policy import MemoryPolicy
from threadmark.workers.turn.action import (
    QUESTION_LENGTH_MAX,
    CallModel,
    Note,
    Park,
    Perform,
    Recall,
    Settle,
    next_action,
)


def model_failed(*, final: bool = False, retry_at_us: int = 0, attempt: int = 1) -> StepFailed:
    return StepFailed(
        step_key=StepKey("model-1"), attempt=attempt, failure=FAILURE, final=final, retry_at_us=retry_at_us
    )


def tool_failed(retry_at_us: int, key: str = "tool-1-0") -> StepFailed:
    return StepFailed(step_key=StepKey(key), attempt=1, failure=FAILURE, retry_at_us=retry_at_us)


def test_a_run_that_never_started_has_no_next_action() -> None:
    """Using a turn before its start raises at once."""
    with pytest.raises(ValueError, match="started"):
        next_action(fold([]), an_agent(), a_run(), fence=1, now_us=NOW_US)


def test_after_input_the_model_is_asked() -> None:
    """The first call of an execution is `model-1`, its first attempt."""
    assert act(Story.begun()) == CallModel(StepKey("model-1"), 1, 1)


def test_after_a_crash_the_same_model_call_is_made_again() -> None:
    """It has the same key, so a server that knows keys does not charge twice; the attempt's number rises."""
    assert act(Story.begun().next_turn()) == CallModel(StepKey("model-1"), 1, 2)


def test_after_the_last_result_the_model_is_asked_again() -> None:
    """The ordinal counts the replies of the execution."""
    story = Story.begun(replied(asked()), returned("tool-1-0"))

    assert act(story) == CallModel(StepKey("model-2"), 2, 1)


def test_a_reply_without_calls_ends_the_run() -> None:
    """Nothing is next: success."""
    assert act(Story.begun(replied())) == Settle(RunOutcome(status=RunStatus.SUCCESS))


def test_calls_that_need_nothing_first_are_performed_at_once_and_together() -> None:
    """Pure and idempotent calls are made without an intent."""
    action = act(Story.begun(replied(asked(call_id="c1"), asked(call_id="c2"))))

    assert isinstance(action, Perform)
    assert [call.call.id for call in action.calls] == ["c1", "c2"]


def test_an_intent_is_recorded_before_a_keyed_call() -> None:
    """First the note, then the performance; with one key for the step, whichever attempt it is."""
    story = Story.begun(replied(asked("mail")))

    action = act(story)
    assert isinstance(action, Note)
    (intent,) = action.entries
    assert isinstance(intent, StepIntended)
    assert isinstance(act(story.tell(intent)), Perform)


def test_a_keyed_call_is_made_again_after_a_crash_without_a_second_intent() -> None:
    """The other side knows the key again, so nobody has to be asked."""
    story = Story.begun(replied(asked("mail")), intended(effect="keyed")).next_turn()

    action = act(story)

    assert isinstance(action, Perform)
    assert action.calls[0].attempt(2) == 2


@pytest.mark.parametrize(
    ("call", "invalid", "error"),
    [
        (asked("no_such_tool"), None, "UnknownTool"),
        (asked("look", order=7), None, "BadArguments"),
        (asked("look", amount=7), None, "BadArguments"),
        (asked("look"), "the arguments are no JSON", "BadArguments"),
    ],
)
def test_a_call_that_cannot_be_made_is_answered_and_not_performed(call: Any, invalid: str | None, error: str) -> None:
    """The model learns what was wrong, and may ask again; the run goes on."""
    story = Story.begun(replied(call, invalid_calls={"call-1": invalid} if invalid else None))

    action = act(story)

    assert outcomes(action) == ["error"]
    assert isinstance(action, Note)
    (entry,) = action.entries
    assert isinstance(entry, ToolReturned)
    assert entry.failure is not None
    assert entry.failure.error == error
    assert isinstance(act(story.tell(entry)), CallModel)


def test_a_bad_call_does_not_hold_up_its_neighbours() -> None:
    """What can be noted is noted first; then the good calls are made."""
    story = Story.begun(replied(asked("no_such_tool", "c1"), asked("look", "c2")))
    action = act(story)
    assert isinstance(action, Note)

    performed = act(story.tell(*action.entries))

    assert isinstance(performed, Perform)
    assert [call.call.id for call in performed.calls] == ["c2"]


def test_a_retry_that_is_not_due_parks_the_run() -> None:
    """Waiting costs no compute: the run is a row with a due time."""
    story = Story.begun(replied(asked()), tool_failed(LATER_US + 5))

    assert act(story) == Park(RunOutcome.of_park(ParkReason.BACKOFF, LATER_US + 5))


def test_no_intent_is_recorded_for_a_call_whose_retry_is_not_due() -> None:
    """An intent that lay there until the retry would put the call in doubt if the worker died meanwhile."""
    story = Story.begun(replied(asked("pay")), intended(), tool_failed(LATER_US + 1))

    assert act(story) == Park(RunOutcome.of_park(ParkReason.BACKOFF, LATER_US + 1))
    assert isinstance(act(story, now_us=LATER_US + 1), Note)


def test_a_retry_that_is_due_is_made() -> None:
    """At the instant itself it is due."""
    assert isinstance(act(Story.begun(replied(asked()), tool_failed(LATER_US))), Perform)


def test_of_several_retries_the_first_due_one_wakes_the_run() -> None:
    """And a call that is ready is not kept waiting for one that is not."""
    calls = replied(asked(call_id="c1"), asked(call_id="c2"), asked(call_id="c3"))
    story = Story.begun(calls, tool_failed(LATER_US + 9), tool_failed(LATER_US + 5, "tool-1-1"))
    performed = act(story)
    assert isinstance(performed, Perform)
    assert [call.call.id for call in performed.calls] == ["c3"]

    assert act(story.tell(returned("tool-1-2", call_id="c3"))) == Park(
        RunOutcome.of_park(ParkReason.BACKOFF, LATER_US + 5)
    )


@pytest.mark.parametrize(
    ("said", "question"),
    [
        ("why?", "why?"),
        ("x" * 8_192, "x" * 8_192),
        ("a" + "x" * 8_192, "x" * 8_192),
        ("  " + "x" * 8_192 + "\n", "x" * 8_192),
    ],
)
def test_the_question_to_memory_is_as_long_as_memory_takes(said: str, question: str) -> None:
    """Of a longer message, its end: that is where its question stands."""
    agent = ChatAgent(name="chat", tools=[], memory=MemoryPolicy())
    story = Story(started(human(said)), TurnStarted(worker_id="w1", attempt=1))

    action = act(story, agent)

    assert isinstance(action, Recall)
    assert action.question == question
    assert action.step_key == "recall-1"


def test_memory_takes_the_longest_question_that_a_turn_asks() -> None:
    """And one code point more is refused."""
    assert memory_question("x" * QUESTION_LENGTH_MAX).text
    with pytest.raises(Refused):
        memory_question("x" * (QUESTION_LENGTH_MAX + 1))


def test_a_model_that_was_unavailable_is_asked_again_when_it_is_time() -> None:
    """Until then the run is parked."""
    story = Story.begun(model_failed(retry_at_us=LATER_US))

    assert act(story, now_us=LATER_US - 1) == Park(RunOutcome.of_park(ParkReason.BACKOFF, LATER_US))
    assert act(story) == CallModel(StepKey("model-1"), 1, 2)


@pytest.mark.parametrize(
    "failures",
    [
        [model_failed(final=True)],
        [model_failed(attempt=1), model_failed(attempt=2)],
    ],
)
def test_a_model_that_refused_or_was_away_too_often_ends_the_run(failures: list[StepFailed]) -> None:
    """The run ends with the last failure; it may be continued later."""
    story = Story.begun(*failures)

    assert act(story, an_agent(model_attempt_max=2)) == Settle(
        RunOutcome(status=RunStatus.ERROR, thread_status=ThreadStatus.ERROR, reason="model", failure=FAILURE)
    )

    story.run = 2
    assert isinstance(act(story.tell(started(run_id="run-2", source="continue")), number=2), CallModel)


def test_the_next_action_is_the_same_however_often_it_is_asked() -> None:
    """Asking changes nothing: the fold is left as it was, so a repeated turn decides alike."""
    story = Story.begun(replied(asked("mail", "c1"), asked("no_such_tool", "c2")))
    state = story.state

    first = next_action(state, an_agent(), a_run(), fence=1, now_us=LATER_US)
    second = next_action(state, an_agent(), a_run(), fence=1, now_us=LATER_US)

    assert first == second
    assert state == story.state
