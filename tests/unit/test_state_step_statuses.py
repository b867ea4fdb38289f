"""Steps in every state that they can be in: what is open, what ended and how, and what was taken back."""

from typing import Any

import msgspec
import pytest

from tests.support.factories import EXECUTION, NOW_US, Story, ai, asked, human, replied, returned, started, tool_result
from threadmark.state import (
    Entry,
    ExecutionId,
    Failure,
    Recalled,
    RunId,
    RunSettled,
    StateUpdated,
    StepFailed,
    StepIntended,
    StepKey,
    ToolReturned,
    TurnStarted,
    WaitAnswered,
    WaitOpened,
    WaitSuperseded,
)
from threadmark.state.entries.lineage import ROOT, Leave, Stretch
from threadmark.state.entries.steps import Attempt, Step, Steps, lineage_seeing, steps_of

MODEL, TOOL = StepKey("model-1"), StepKey("tool-1-0")
FAILURE = Failure("Broken", "it broke")
LATER_US = NOW_US + 10**9


def told(story: Story, *, effect: str | None = "pure", now_us: int | None = None, of: str = EXECUTION) -> Steps:
    """What the story tells of an execution whose tools all have this effect."""
    now = story.now_us if now_us is None else now_us
    return steps_of(story.entries, ExecutionId(of), lambda _: effect, now)


def last(story: Story, **changes: Any) -> Step:
    """The step that came up last."""
    return told(story, **changes).steps[-1]


def outcomes(step: Step) -> list[tuple[int, str | None]]:
    """The attempts of a step: number and outcome."""
    return [(number, each.outcome) for number, each in step.attempts.items()]


def failed(key: StepKey, *, attempt: int = 1, retry_at_us: int = 0, final: bool = False) -> StepFailed:
    """The entry of an attempt that failed."""
    return StepFailed(step_key=key, attempt=attempt, failure=FAILURE, retry_at_us=retry_at_us, final=final)


def question(kind: Any, wait_id: str = "wait-1") -> WaitOpened:
    """The entry of a question about the first call."""
    return WaitOpened(wait_id=wait_id, step_key=TOOL, kind=kind, tool="look", arguments={}, shown_digest="d")


ANSWER = WaitAnswered(wait_id="wait-1", step_key=TOOL, value=True, answered_by="anna", answered_at_us=NOW_US)
INTENT = StepIntended(step_key=TOOL, effect="once", idempotency_key="k")


def returned_model(**changes: Any) -> Entry:
    """A reply with other fields."""
    return msgspec.structs.replace(replied(), **changes)


def settled(status: str = "interrupted", **changes: Any) -> RunSettled:
    """The entry of a run's end."""
    return RunSettled(run_id=RunId("run-1"), status=status, **changes)


def test_a_step_that_was_begun_says_by_whom_and_since_when() -> None:
    """The attempt of the turn that is under way: it has no end yet, and neither has its step."""
    step = last(Story.begun())

    begun = Attempt(attempt=1, worker_id="w1", fence=1, started_at_us=NOW_US + 2_000)
    assert (step.key, step.status, step.is_open, step.attempts) == (MODEL, "in_flight", True, {1: begun})
    assert (begun.ended_at_us, begun.outcome, begun.failure) == (None, None, None)


def test_a_reply_says_when_it_came_and_what_it_used() -> None:
    """Its attempt was begun as long ago as it took, by the worker's own measure."""
    story = Story.begun(replied())
    (step,) = told(story).steps

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
    assert (told(story).tokens_paid, told(story).tokens_saved) == (15, 0)
    story.next_turn(returned("tool-1-0"), replied(ordinal=2))

    assert (told(story).tokens_paid, told(story).tokens_saved) == (30, 15)


def test_what_another_execution_did_later_is_not_told() -> None:
    """Not its steps, and not its tokens; of an execution that the entries do not know, nothing is."""
    story = Story.begun(replied(), settled("success"))
    before = told(story)
    story.run = 2
    story.tell(started(human("more", "human-2"), run_id="run-2", execution_id="execution-2"))
    story.tell(TurnStarted(worker_id="w2", attempt=1), replied(ordinal=1, text="again"))
    story.run = 3
    story.tell(started(run_id="run-3", execution_id=EXECUTION, source="continue"))

    assert told(story) == before
    assert [step.key for step in told(story, of="execution-2").steps] == [MODEL]
    assert told(story, of="execution-9") == Steps(steps=[], tokens_paid=0, tokens_saved=0)


@pytest.mark.parametrize("key", [MODEL, TOOL])
def test_a_failed_step_waits_until_its_next_attempt_is_due(key: StepKey) -> None:
    """Then it is under way: the turn that goes on makes the next attempt."""
    story = Story.begun() if key is MODEL else Story.begun(replied(asked()))
    story.tell(failed(key, retry_at_us=LATER_US))
    assert [last(story, now_us=now).status for now in (LATER_US - 1, LATER_US)] == ["waiting", "in_flight"]
    early = Story(*(each.entry for each in story.entries))
    for told_by, now in ((early, LATER_US - 1), (story, LATER_US)):
        told_by.now_us = now - 1_000
        told_by.next_turn()
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
    """The model was told so; an attempt that had failed before stays."""
    refusal = returned("tool-1-0", outcome="error", failure=Failure(error, "no"))
    other = returned("tool-1-0", outcome="error", failure=Failure("Broken", "no"))
    tool = told(Story.begun(replied(asked()), refusal)).steps[1]
    again = told(Story.begun(replied(asked()), failed(TOOL), refusal)).steps[1]
    called = told(Story.begun(replied(asked()), other)).steps[1]

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
    tool = told(Story.begun(replied(asked()), returned("tool-1-0", outcome=outcome, duration_us=700))).steps[1]

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
    tool = told(story).steps[1]

    assert (tool.status, tool.resolved_by, tool.wait_kind) == ("recorded", "anna", None)
    assert outcomes(tool) == [(1, "interrupted")]


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
    """A budget, or a pause: the model call is not told at all, a tool call has no attempt; what failed is told."""
    assert told(Story.begun().tell(end)).steps == []
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
    recall, model = told(Story.begun(recalled)).steps

    assert (recall.key, recall.kind, recall.name, recall.effect) == (key, "recall", "memory", "pure")
    assert (recall.outcome, recall.failure, recall.seq, recall.finished_at_us) == (outcome, failure, 3, NOW_US + 3_000)
    assert recall.status == ("recorded" if status == "ok" else "failed")
    assert [(each.worker_id, each.started_at_us, each.outcome) for each in recall.attempts.values()] == [
        ("w1", NOW_US + 2_000, outcome)
    ]
    assert (model.key, model.status, outcomes(model)) == (MODEL, "in_flight", [(1, None)])
    assert model.attempts[1].started_at_us == NOW_US + 3_000


def test_a_question_to_memory_that_a_dead_worker_put_is_told_with_it() -> None:
    """Its attempts are those of the turns before the answer."""
    recalled = Recalled(step_key=StepKey("recall-1"), message_id="human-1", question={}, attempt=2)
    recall, _ = told(Story.begun().next_turn(recalled)).steps

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
    tools = [step for step in told(story).steps if step.kind == "tool"]

    assert (tools[0].status, tools[0].wait_kind) == (status, None if status == "cancelled" else "approval")
    assert (tools[0].seq, tools[0].finished_at_us) == ((6, NOW_US + 6_000) if status == "cancelled" else (None, None))
    assert [step.status for step in told(story).steps if step.key == MODEL] == ["recorded"]


def test_a_call_that_is_written_from_outside_is_a_step_of_its_own() -> None:
    """Beside those that have their results, which it leaves as they are."""
    story = Story.begun(replied(asked()), returned("tool-1-0"), replied(ordinal=2), settled("success"))
    story.tell(StateUpdated(messages=(ai("then look", asked(call_id="call-9"), message_id="ai-9"),)))
    *_, tool = told(story).steps

    assert (tool.call_id, tool.status, outcomes(tool)) == ("call-9", "waiting", [])
    assert [step.status for step in told(story).steps[:3]] == ["recorded"] * 3


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
    """A result of an attempt that nobody saw begin makes one."""
    story = Story(started(human()), replied(asked()))
    entry = returned("tool-1-0", attempt=3)
    assert isinstance(entry, ToolReturned)
    tool = told(story.tell(entry)).steps[1]

    assert outcomes(tool) == [(3, "ok")]
    assert (tool.attempts[3].worker_id, tool.attempts[3].fence) == ("", 1)
