"""Steps: what became of every model call and tool call of an execution, from its entries alone."""

from tests.support.factories import EXECUTION, NOW_US, Story, asked, replied, returned, started
from threadmark.state import ExecutionId, Failure, StepFailed, StepIntended, StepKey
from threadmark.state.fold.steps import Step, steps_of

FAILURE = Failure("Broken", "it broke")


def steps(story: Story, execution_id: str = EXECUTION) -> list[Step]:
    """The steps of an execution whose tools are all pure."""
    return list(steps_of(story.entries, ExecutionId(execution_id), lambda _: "pure", story.now_us).steps)


def test_a_whole_run_is_listed_step_by_step() -> None:
    """Each model call and each tool call is a step, in the order in which they came up, with its attempts."""
    story = Story.begun(replied(asked()), returned("tool-1-0"), replied(ordinal=2))

    assert [(step.key, step.kind, step.status, step.outcome, list(step.attempts)) for step in steps(story)] == [
        ("model-1", "model", "recorded", "ok", [1]),
        ("tool-1-0", "tool", "recorded", "ok", [1]),
        ("model-2", "model", "recorded", "ok", [1]),
    ]


def test_an_attempt_that_a_dead_worker_left_is_listed_as_interrupted() -> None:
    """It has no entry of its own: another turn came, and the step was ready in the one before."""
    story = Story.begun(replied(asked())).next_turn(returned("tool-1-0", attempt=2))

    (_, tool, _) = steps(story)

    assert [(each.attempt, each.worker_id, each.outcome) for each in tool.attempts.values()] == [
        (1, "w1", "interrupted"),
        (2, "w2", "ok"),
    ]


def test_a_failed_attempt_is_listed_with_its_failure() -> None:
    """The step waits for its next attempt, and says until when."""
    failed = StepFailed(step_key=StepKey("tool-1-0"), attempt=1, failure=FAILURE, retry_at_us=NOW_US + 10**9)
    (_, tool) = steps(Story.begun(replied(asked()), failed))

    assert (tool.status, tool.failure, tool.attempts[1].failure) == ("waiting", FAILURE, FAILURE)


def test_a_fork_that_begins_with_open_calls_lists_them() -> None:
    """An execution may take over calls that no reply of its own asked for; they are its first steps."""
    story = Story.begun(replied(asked()))
    story.run = 2
    story.tell(started(run_id="run-2", execution_id="execution-2", source="fork", from_seq=3))
    story.next_turn()

    assert [(step.key, step.call_id, step.status) for step in steps(story, "execution-2")] == [
        ("tool-0-0", "call-1", "in_flight")
    ]


def test_an_intent_names_the_effect() -> None:
    """What is recorded wins over what the agent's tool says today."""
    intended = StepIntended(step_key=StepKey("tool-1-0"), effect="once", idempotency_key="k")
    (_, tool) = steps(Story.begun(replied(asked()), intended))

    assert tool.effect == "once"
