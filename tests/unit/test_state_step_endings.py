"""Steps at the end of a run, before a model call, and after a change from outside: what is taken back, what stays."""

from typing import Any

import pytest

from tests.support.factories import NOW_US, Story, ai, asked, human, replied, returned, started, tool_result
from tests.support.step_journals import (
    FAILURE,
    LATER_US,
    MODEL,
    TOOL,
    failed,
    last,
    outcomes,
    question,
    settled,
    steps_in,
)
from threadmark.state import Recalled, RunSettled, StateUpdated, StepKey, ToolReturned, TurnStarted
from threadmark.state.entries.lineage import ROOT, Leave, Stretch
from threadmark.state.fold.steps import lineage_seeing


@pytest.mark.parametrize(
    ("story", "status", "attempts"),
    [
        (Story.begun(), "cancelled", [(1, None)]),
        (Story.begun(replied(asked())), "waiting", [(1, None)]),
        (Story.begun(failed(MODEL, retry_at_us=LATER_US)), "cancelled", [(1, "error")]),
    ],
)
def test_what_is_open_at_the_end_of_a_run_is_under_way_no_more(
    story: Story, status: str, attempts: list[tuple[int, str | None]]
) -> None:
    """A model call is cancelled; a tool call waits for the run that goes on."""
    step = last(story.tell(settled()), now_us=LATER_US)

    assert (step.status, outcomes(step)) == (status, attempts)


@pytest.mark.parametrize("end", [settled(reason="steps"), settled(reason="tokens"), settled(paused_at="model")])
def test_a_run_that_ends_before_its_next_step_has_not_begun_it(end: RunSettled) -> None:
    """A budget, or a pause: the model call is not listed, a tool call has no attempt; what failed is listed."""
    assert steps_in(Story.begun().tell(end)).steps == []
    tool = last(Story.begun(replied(asked())).tell(end))
    assert (tool.key, tool.status, outcomes(tool)) == (TOOL, "waiting", [])
    again = last(Story.begun(failed(MODEL)).tell(end))
    assert (again.key, outcomes(again)) == (MODEL, [(1, "error")])
    done = last(Story.begun(replied()).tell(end))
    assert (done.key, done.status, outcomes(done)) == (MODEL, "recorded", [(1, "ok")])


def test_a_run_that_goes_on_begins_with_its_own_turn() -> None:
    """Between its start and its first turn nobody works on it."""
    story = Story.begun(replied(asked())).tell(settled(paused_at="tools"))
    story.run = 2
    story.tell(started(run_id="run-2", source="continue"))
    assert outcomes(last(story)) == []
    story.tell(TurnStarted(worker_id="w9", attempt=1))

    tool = last(story)
    assert (tool.status, [each.worker_id for each in tool.attempts.values()]) == ("in_flight", ["w9"])


@pytest.mark.parametrize(("status", "outcome"), [("ok", "ok"), ("unavailable", "error")])
def test_a_question_to_memory_is_a_step(status: Any, outcome: str) -> None:
    """What looked like an attempt of the model call behind it was its own; the model call begins after it."""
    failure = None if status == "ok" else FAILURE
    key = StepKey("recall-1")
    recalled = Recalled(step_key=key, message_id="human-1", question={}, status=status, failure=failure)
    recall, model = steps_in(Story.begun(recalled)).steps

    assert (recall.key, recall.kind, recall.name, recall.effect) == (key, "recall", "memory", "pure")
    assert (recall.outcome, recall.failure, recall.seq, recall.finished_at_us) == (outcome, failure, 3, NOW_US + 3_000)
    assert recall.status == ("recorded" if status == "ok" else "failed")
    assert [(each.worker_id, each.started_at_us, each.outcome) for each in recall.attempts.values()] == [
        ("w1", NOW_US + 2_000, outcome)
    ]
    assert (model.key, model.status, outcomes(model)) == (MODEL, "in_flight", [(1, None)])
    assert model.attempts[1].started_at_us == NOW_US + 3_000


def test_a_recall_that_a_dead_worker_began_is_listed_with_its_attempt() -> None:
    """Its attempts are those of the turns before the answer."""
    recalled = Recalled(step_key=StepKey("recall-1"), message_id="human-1", question={}, attempt=2)
    recall, _ = steps_in(Story.begun().next_turn(recalled)).steps

    assert outcomes(recall) == [(1, "interrupted"), (2, "ok")]


@pytest.mark.parametrize(
    ("update", "status"),
    [
        (StateUpdated(messages=(tool_result("call-1"),)), "cancelled"),
        (StateUpdated(removed=("ai-1",)), "cancelled"),
        (StateUpdated(messages=()), "waiting"),
    ],
)
def test_a_call_that_is_answered_or_taken_back_from_outside_is_cancelled(update: StateUpdated, status: str) -> None:
    """At the place of the update; one that still stands goes on waiting, and a reply that was given stays given."""
    story = Story.begun(replied(asked()), question("approval"), settled()).tell(update)
    tools = [step for step in steps_in(story).steps if step.kind == "tool"]

    assert (tools[0].status, tools[0].wait_kind) == (status, None if status == "cancelled" else "approval")
    assert (tools[0].seq, tools[0].finished_at_us) == ((6, NOW_US + 6_000) if status == "cancelled" else (None, None))
    assert [step.status for step in steps_in(story).steps if step.key == MODEL] == ["recorded"]


def test_a_call_that_is_written_from_outside_is_a_step_of_its_own() -> None:
    """Beside those that have their results, which it leaves as they are."""
    story = Story.begun(replied(asked()), returned("tool-1-0"), replied(ordinal=2), settled("success"))
    story.tell(StateUpdated(messages=(ai("then look", asked(call_id="call-9"), message_id="ai-9"),)))
    *_, tool = steps_in(story).steps

    assert (tool.call_id, tool.status, outcomes(tool)) == ("call-9", "waiting", [])
    assert [step.status for step in steps_in(story).steps[:3]] == ["recorded"] * 3


def test_a_run_is_seen_from_the_branch_that_has_all_of_it() -> None:
    """The present one if that sees every entry of it, else the one that the run ended on."""
    story = Story.begun(replied())
    leaves = {1: Leave(0, 2)}
    present = (Stretch(0, 2), Stretch(1))

    assert lineage_seeing(story.entries, leaves, ROOT, 1) == ROOT
    assert lineage_seeing(story.entries, leaves, present, 1) == ROOT
    story.branch, story.run = 1, 2
    story.tell(started(human("more", "human-2"), run_id="run-2", execution_id="execution-2"))
    assert lineage_seeing(story.entries, leaves, present, 2) == present
    assert lineage_seeing(story.entries, leaves, ROOT, 2) == present


def test_results_are_whole_entries() -> None:
    """A result without a recorded attempt makes one."""
    story = Story(started(human()), replied(asked()))
    entry = returned("tool-1-0", attempt=3)
    assert isinstance(entry, ToolReturned)
    tool = steps_in(story.tell(entry)).steps[1]

    assert outcomes(tool) == [(3, "ok")]
    assert (tool.attempts[3].worker_id, tool.attempts[3].fence) == ("", 1)
