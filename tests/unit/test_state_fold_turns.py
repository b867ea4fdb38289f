"""The fold: which turn a step could first begin in, and what memory was asked before it."""

from tests.support.factories import Story, asked, human, replied, started
from threadmark.state import Entry, Failure, Recalled, StateUpdated, StepFailed, StepKey, TurnStarted

FAILURE = Failure("Broken", "it broke")


def entries_of(story: Story) -> list[Entry]:
    """The entries of a story, for another story."""
    return [each.entry for each in story.entries]


def test_what_memory_answered_belongs_to_the_message_it_was_asked_for() -> None:
    """Until a person says something else, under the same id or another one; each question is counted."""
    answer = Recalled(step_key=StepKey("recall-1"), message_id="human-1", question={})
    story = Story.begun(answer)
    assert story.state.recalled_now == answer
    assert story.state.execution is not None
    assert (story.state.execution.recall_count, story.state.execution.ready_turn) == (1, 1)
    assert Story.begun().next_turn(answer).state.execution.model_attempt == 1  # type: ignore[union-attr]

    assert Story(*entries_of(story), StateUpdated(messages=(human("more", "human-2"),))).state.recalled_now is None
    assert Story(*entries_of(story), StateUpdated(messages=(human("else"),))).state.recalled is None
    assert Story(*entries_of(story), StateUpdated(removed=("human-1",))).state.recalled_now is None
    assert Story(answer).state.recalled == answer


def test_a_run_that_goes_on_begins_with_a_first_attempt() -> None:
    """The turn that it begins is the first in which its model call, or a call that was left open, could begin."""
    model = Story.begun().next_turn()
    assert model.state.execution is not None
    assert model.state.execution.model_attempt == 2
    call = Story.begun(replied(asked())).next_turn()
    assert call.call().attempt(2) == 2
    for story in (model, call):
        story.tell(started(run_id="run-2", source="continue"), TurnStarted(worker_id="w3", attempt=1))
        execution = story.state.execution
        assert execution is not None
        assert (execution.model_attempt, execution.attempt, execution.turn_count) == (1, 1, 3)
        assert [each.attempt(execution.turn_count) for each in story.state.open_calls] in ([], [1])


def test_a_call_that_no_execution_asked_for_begins_with_its_first_attempt() -> None:
    """A journal may begin in the middle: its first turn is the first in which anything could begin."""
    story = Story(replied(asked(), asked(call_id="call-2")))
    story.tell(StepFailed(step_key=StepKey("tool-1-1"), attempt=1, failure=FAILURE))

    assert [(each.ready_turn, each.attempt(0)) for each in story.state.open_calls] == [(0, 1), (0, 2)]
