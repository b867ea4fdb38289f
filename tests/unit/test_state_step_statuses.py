"""Steps while they go on: who began them, what holds them up, and what their result says."""

from typing import Any

import pytest

from tests.support.factories import EXECUTION, NOW_US, Story, asked, human, replied, returned, started
from tests.support.step_journals import (
    ANSWER,
    FAILURE,
    INTENT,
    LATER_US,
    MODEL,
    TOOL,
    failed,
    last,
    outcomes,
    question,
    returned_model,
    settled,
    steps_in,
)
from threadmark.state import Entry, Failure, StepIntended, StepKey, TurnStarted, WaitSuperseded
from threadmark.state.fold.steps import Attempt, Steps


def test_a_step_that_was_begun_says_by_whom_and_since_when() -> None:
    """The attempt of the turn that is under way: it has no end yet, and neither has its step."""
    step = last(Story.begun())

    begun = Attempt(attempt=1, worker_id="w1", fence=1, started_at_us=NOW_US + 2_000)
    assert (step.key, step.status, step.is_open, step.attempts) == (MODEL, "in_flight", True, {1: begun})
    assert (begun.ended_at_us, begun.outcome, begun.failure) == (None, None, None)


def test_a_reply_says_when_it_came_and_what_it_used() -> None:
    """Its attempt was begun as long ago as it took, by the worker's own measure."""
    story = Story.begun(replied())
    (step,) = steps_in(story).steps

    assert (step.name, step.usage, step.seq, step.finished_at_us) == ("scripted", replied().usage, 3, NOW_US + 3_000)
    assert (step.attempts[1].started_at_us, step.attempts[1].ended_at_us) == (NOW_US + 2_000, NOW_US + 3_000)
    measured = Story.begun(returned_model(duration_us=700))
    assert last(measured).attempts[1].started_at_us == NOW_US + 3_000 - 700


def test_a_reply_that_was_cut_short_is_cancelled() -> None:
    """What was said until then is a message all the same."""
    step = last(Story.begun(returned_model(finish_reason="cancelled")))

    assert (step.status, step.outcome, outcomes(step)) == ("cancelled", "cancelled", [(1, "cancelled")])


def test_tokens_are_paid_once_and_saved_by_each_later_turn() -> None:
    """A turn after the first would have paid for the replies before it again."""
    story = Story.begun(replied(asked()))
    assert (steps_in(story).tokens_paid, steps_in(story).tokens_saved) == (15, 0)
    story.next_turn(returned("tool-1-0"), replied(ordinal=2))

    assert (steps_in(story).tokens_paid, steps_in(story).tokens_saved) == (30, 15)


def test_what_another_execution_did_later_is_not_listed() -> None:
    """Not its steps, and not its tokens; of an execution that the entries do not know, nothing is."""
    story = Story.begun(replied(), settled("success"))
    before = steps_in(story)
    story.run = 2
    story.tell(started(human("more", "human-2"), run_id="run-2", execution_id="execution-2"))
    story.tell(TurnStarted(worker_id="w2", attempt=1), replied(ordinal=1, text="again"))
    story.run = 3
    story.tell(started(run_id="run-3", execution_id=EXECUTION, source="continue"))

    assert steps_in(story) == before
    assert [step.key for step in steps_in(story, of="execution-2").steps] == [MODEL]
    assert steps_in(story, of="execution-9") == Steps(steps=[], tokens_paid=0, tokens_saved=0)


@pytest.mark.parametrize("key", [MODEL, TOOL])
def test_a_failed_step_waits_until_its_next_attempt_is_due(key: StepKey) -> None:
    """Then it is under way: the turn that goes on makes the next attempt."""
    story = Story.begun() if key is MODEL else Story.begun(replied(asked()))
    story.tell(failed(key, retry_at_us=LATER_US))
    assert [last(story, now_us=now).status for now in (LATER_US - 1, LATER_US)] == ["waiting", "in_flight"]
    early = Story(*(each.entry for each in story.entries))
    for retried, now in ((early, LATER_US - 1), (story, LATER_US)):
        retried.now_us = now - 1_000
        retried.next_turn()
    assert outcomes(last(early)) == [(1, "error")]
    assert outcomes(last(story)) == [(1, "error"), (2, None)]
    assert last(story).attempts[1].failure == FAILURE


def test_a_model_that_failed_for_good_is_asked_no_more() -> None:
    """Its step has ended, with the failure."""
    step = last(Story.begun(failed(MODEL, final=True)))

    assert (step.status, step.outcome, step.failure) == ("failed", "error", FAILURE)
    assert (step.seq, step.finished_at_us, outcomes(step)) == (3, NOW_US + 3_000, [(1, "error")])


def test_a_failure_may_be_all_that_is_known_of_a_model_call() -> None:
    """The turn that made it is not in the journal: an import from elsewhere may begin in the middle."""
    step = last(Story(started(human()), failed(MODEL)))

    assert (step.key, step.kind, step.effect, outcomes(step)) == (MODEL, "model", "idempotent", [(1, "error")])


@pytest.mark.parametrize("effect", ["keyed", "once"])
def test_a_call_with_an_effect_begins_with_its_intent(effect: str) -> None:
    """Before it, nobody may have called anything; a tool that the agent does not have is never begun."""
    story = Story.begun(replied(asked()))
    assert outcomes(last(story, effect=effect)) == []
    assert outcomes(last(story, effect=None)) == []
    assert outcomes(last(story, effect="idempotent")) == [(1, None)]
    story.tell(StepIntended(step_key=TOOL, effect=effect, idempotency_key="k"))

    assert outcomes(last(story, effect=effect)) == [(1, None)]


def test_a_call_with_arguments_that_cannot_be_used_is_not_begun() -> None:
    """And its answer, that it was not made, leaves no attempt behind."""
    story = Story.begun(replied(asked(), invalid_calls={"call-1": "no JSON"}))
    assert outcomes(last(story)) == []


@pytest.mark.parametrize("error", ["BadArguments", "UnknownTool"])
def test_a_call_that_was_not_made_has_no_attempt(error: str) -> None:
    """The model received that result; an attempt that had failed before stays."""
    refusal = returned("tool-1-0", outcome="error", failure=Failure(error, "no"))
    other = returned("tool-1-0", outcome="error", failure=Failure("Broken", "no"))
    tool = steps_in(Story.begun(replied(asked()), refusal)).steps[1]
    again = steps_in(Story.begun(replied(asked()), failed(TOOL), refusal)).steps[1]
    called = steps_in(Story.begun(replied(asked()), other)).steps[1]

    assert (tool.status, outcomes(tool)) == ("failed", [])
    assert outcomes(again) == [(1, "error")]
    assert outcomes(called) == [(1, "error")]


@pytest.mark.parametrize(
    ("outcome", "status", "attempt"),
    [
        ("ok", "recorded", "ok"),
        ("error", "failed", "error"),
        ("cancelled", "cancelled", "cancelled"),
        ("unknown", "cancelled", "cancelled"),
        ("refused", "refused", "cancelled"),
    ],
)
def test_a_result_ends_its_step(outcome: Any, status: str, attempt: str) -> None:
    """With its outcome, at its place in the journal; the attempt ended then, however it did."""
    tool = steps_in(Story.begun(replied(asked()), returned("tool-1-0", outcome=outcome, duration_us=700))).steps[1]

    assert (tool.status, tool.outcome, tool.seq, tool.finished_at_us) == (status, outcome, 4, NOW_US + 4_000)
    assert outcomes(tool) == [(1, attempt)]
    if outcome == "ok":
        assert (tool.attempts[1].started_at_us, tool.attempts[1].ended_at_us) == (NOW_US + 3_300, NOW_US + 4_000)


@pytest.mark.parametrize("kind", ["approval", "in_doubt"])
@pytest.mark.parametrize("end", [ANSWER, WaitSuperseded(wait_id="wait-1", step_key=TOOL)])
def test_a_question_holds_its_step_up_until_it_is_closed(kind: str, end: Entry) -> None:
    """A call that needs an approval had not begun; one that is in doubt had, and broke off."""
    story = Story.begun(replied(asked()), INTENT)
    if kind == "in_doubt":
        story.next_turn()
    story.tell(question(kind))
    asking = last(story)

    assert (asking.wait_id, asking.status) == ("wait-1", {"approval": "waiting", "in_doubt": "in_doubt"}[kind])
    assert outcomes(asking) == ([] if kind == "approval" else [(1, "interrupted")])
    story.tell(end)
    assert last(story).status == "in_flight"
    assert last(story).wait_kind is None


def test_an_attempt_that_failed_is_not_forgotten_by_a_question() -> None:
    """Only the one that had not begun is."""
    story = Story.begun(replied(asked()), failed(TOOL), question("approval"))

    assert outcomes(last(story)) == [(1, "error")]


def test_a_doubt_that_a_person_settles_is_no_attempt() -> None:
    """The attempt in the middle stays broken off; the step has its result, and who gave it."""
    story = Story.begun(replied(asked()), INTENT).next_turn(question("in_doubt"), ANSWER)
    story.tell(returned("tool-1-0", resolved_by="anna"))
    tool = steps_in(story).steps[1]

    assert (tool.status, tool.resolved_by, tool.wait_kind) == ("recorded", "anna", None)
    assert outcomes(tool) == [(1, "interrupted")]
