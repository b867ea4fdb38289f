"""The fold: what each entry means for the state of its thread."""

import math

import pytest

from tests.support.factories import NOW_US, Story, ai, asked, human, replied, returned, started, tool_result
from threadmark.state import (
    Entry,
    Failure,
    RolledBack,
    RunId,
    RunSettled,
    StateUpdated,
    StepFailed,
    StepKey,
    Usage,
    WaitOpened,
    fold,
    spell,
)
from threadmark.state.entries.entry import KINDS

FAILURE = Failure("Broken", "it broke")
TWO_CALLS = (asked("look", "call-1"), asked("look", "call-2"))


def wait_opened() -> WaitOpened:
    return WaitOpened(
        wait_id="wait-1", step_key=StepKey("tool-1-0"), kind="approval", tool="look", arguments={}, shown_digest="d"
    )


def test_nothing_is_the_state_of_an_empty_thread() -> None:
    """A thread without entries has no messages, no position and nothing to do."""
    state = fold([])

    assert (state.seq, state.messages, state.next, state.position, state.execution) == (0, [], None, None, None)


def test_input_makes_the_model_next() -> None:
    """A run's messages join the transcript, its execution begins, and there is a position after the input."""
    state = Story(started(human("one", "h1"), human("two", "h2"))).state

    assert [message.content for message in state.messages] == ["one", "two"]
    assert state.next == "model"
    assert state.execution is not None
    assert (state.execution.run_id, state.execution.run) == ("run-1", 1)
    assert state.position is not None
    assert (state.position.seq, state.position.source, state.position.step) == (1, "input", -1)


def test_a_reply_without_calls_leaves_nothing_to_do() -> None:
    """The transcript ends with the reply, and its tokens and its step are counted."""
    state = Story.begun(replied(text="hello")).state

    assert [message.type for message in state.messages] == ["human", "ai"]
    assert state.next is None
    assert state.execution is not None
    assert (state.execution.tokens_in, state.execution.tokens_out) == (10, 5)
    assert (state.execution.model_count, state.execution.step_count) == (1, 1)


def test_a_reply_with_calls_makes_the_tools_next() -> None:
    """Each call has a step key by its place, and why it cannot be made where its arguments are of no use."""
    state = Story.begun(replied(*TWO_CALLS, invalid_calls={"call-2": "no JSON"})).state

    assert state.next == "tools"
    assert [(key, call.call.id, call.invalid) for key, call in state.calls.items()] == [
        ("tool-1-0", "call-1", None),
        ("tool-1-1", "call-2", "no JSON"),
    ]


def test_results_of_parallel_calls_join_in_the_order_of_the_calls() -> None:
    """Whichever came back first, the transcript is the same in every replay; it grows when the last one is there."""
    story = Story.begun(replied(*TWO_CALLS), returned("tool-1-1", "second", call_id="call-2"))
    assert [message.type for message in story.state.messages] == ["human", "ai"]
    assert [call.call.id for call in story.state.open_calls] == ["call-1"]

    state = story.tell(returned("tool-1-0", "first", call_id="call-1")).state

    assert [message.content for message in state.messages[2:]] == ["first", "second"]
    assert [message.tool_call_id for message in state.messages[2:]] == ["call-1", "call-2"]
    assert (state.next, state.calls) == ("model", {})


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("as it is", "as it is"),
        ({"a": [1, "é"]}, '{"a":[1,"é"]}'),
        (None, "null"),
        (0.5, "0.5"),
        (spell({"$ref": "#/a"}), '{"$ref":"#/a"}'),
        (spell([math.nan, {"$float": "NaN"}]), '[{"$float":"NaN"},{"$float":"NaN"}]'),
        ("abc\x00def", "abc\x00def"),
    ],
)
def test_a_result_reaches_the_model_as_text(value: object, content: str) -> None:
    """Text stays text; anything else is JSON, with its exact code points and the keys that it has."""
    state = Story.begun(replied(asked()), returned("tool-1-0", value)).state

    assert (state.messages[-1].content, state.messages[-1].status) == (content, "success")


@pytest.mark.parametrize("outcome", ["error", "cancelled", "unknown", "refused"])
def test_a_call_without_a_result_reaches_the_model_as_an_error(outcome: str) -> None:
    """The failure's sentence is what the model reads; without one, the outcome's name."""
    state = Story.begun(replied(asked()), returned("tool-1-0", None, outcome=outcome, failure=FAILURE)).state
    bare = Story.begun(replied(asked()), returned("tool-1-0", None, outcome=outcome)).state

    assert (state.messages[-1].content, state.messages[-1].status) == ("it broke", "error")
    assert bare.messages[-1].content == outcome


def test_a_failed_attempt_of_the_model_waits_for_its_next_one() -> None:
    """Attempts and their due time are counted until a reply comes."""
    story = Story.begun(StepFailed(step_key=StepKey("model-1"), attempt=1, failure=FAILURE, retry_at_us=NOW_US))
    execution = story.state.execution
    assert execution is not None
    assert (execution.model_failure_count, execution.model_retry_at_us) == (1, NOW_US)
    assert (execution.model_failed, execution.model_last_failure) == (False, FAILURE)

    execution = story.tell(replied()).state.execution

    assert execution is not None
    assert execution.model_failure_count == 0


def test_a_final_failure_of_the_model_is_kept() -> None:
    """A model that refused is not asked again in this run; a run that goes on from there asks anew."""
    story = Story.begun(StepFailed(step_key=StepKey("model-1"), attempt=1, failure=FAILURE, final=True))
    assert story.state.execution is not None
    assert story.state.execution.model_failed

    story.run = 2
    execution = story.tell(started(run_id="run-2", source="continue")).state.execution

    assert execution is not None
    assert (execution.model_failed, execution.model_failure_count) == (False, 0)


def test_the_end_of_a_run_keeps_why_it_failed_until_the_next_one_begins() -> None:
    """A settled run leaves its failure and the node it paused at; the next run clears the failure."""
    story = Story.begun(RunSettled(run_id=RunId("run-1"), status="error", failure=FAILURE, paused_at="tools"))
    assert (story.state.failure, story.state.execution and story.state.execution.paused_at) == (FAILURE, "tools")
    assert story.state.execution is not None
    assert story.state.execution.settled

    state = story.tell(started(human("again", "h2"), run_id="run-2", execution_id="execution-2")).state

    assert state.failure is None


def test_a_message_of_a_known_id_takes_the_old_place() -> None:
    """An update that replaces a message does not move it to the end."""
    story = Story.begun(replied())

    state = story.tell(StateUpdated(messages=(human("corrected"),))).state

    assert [(message.id, message.content) for message in state.messages] == [("human-1", "corrected"), ("ai-1", "hi")]


@pytest.mark.parametrize(
    ("update", "following"),
    [
        (StateUpdated(messages=(human("more", "h2"),)), "model"),
        (StateUpdated(messages=(ai("I say", message_id="ai-9"),)), None),
        (StateUpdated(messages=(human("more", "h2"),), as_node="model"), None),
        (StateUpdated(messages=(ai("wait", asked("look", "call-9"), message_id="ai-9"),)), "tools"),
        (StateUpdated(removed=("ai-1",)), "model"),
        (StateUpdated(removed=("ai-1", "human-1")), None),
        (StateUpdated(removed=("no such message",)), None),
    ],
)
def test_an_update_from_outside_decides_what_comes_next(update: StateUpdated, following: str | None) -> None:
    """After a person's message the model, after open calls the tools, after a reply nothing."""
    state = Story.begun(replied()).tell(update).state

    assert state.next == following
    assert state.position is not None
    assert state.position.source == "update"


def test_calls_written_from_outside_have_keys_of_their_own() -> None:
    """No model call has the ordinal 0, and two updates never share a step."""
    first = Story.begun(StateUpdated(messages=(ai("", asked("look", "call-8"), message_id="ai-8"),)))
    (key,) = first.state.calls
    first.tell(returned(key, call_id="call-8"))

    second = first.tell(StateUpdated(messages=(ai("", asked("look", "call-9"), message_id="ai-9"),)))
    (other,) = second.state.calls

    assert key.startswith("tool-0-0-")
    assert other != key


def test_an_update_that_answers_a_call_leaves_the_others_open() -> None:
    """A result written from outside takes the place of the tool's own; what was known of the other call stays."""
    story = Story.begun(replied(*TWO_CALLS)).tell(StateUpdated(messages=(tool_result("call-1"),)))

    assert [(call.step_key, call.call.id) for call in story.state.open_calls] == [("tool-1-1", "call-2")]
    assert story.state.next == "tools"


def test_positions_form_a_chain() -> None:
    """After the input and after each finished node there is a position, with its parent and a rising step."""
    state = Story.begun(replied(asked()), returned("tool-1-0"), replied(ordinal=2)).state

    chain = []
    position = state.position
    while position is not None:
        chain.append((position.seq, position.step, position.source, position.next))
        position = position.parent
    assert chain[::-1] == [
        (1, -1, "input", "model"),
        (3, 0, "loop", "tools"),
        (4, 1, "loop", "model"),
        (5, 2, "loop", None),
    ]


def test_tokens_of_recorded_replies_are_saved_by_each_later_turn() -> None:
    """A turn that finds replies in the journal does not pay for them again; the run shows how much that was."""
    story = Story.begun(replied(asked(), usage=Usage(100, 10)))
    assert story.state.execution is not None
    assert story.state.execution.tokens_saved == 0

    story.next_turn(returned("tool-1-0"), replied(ordinal=2, usage=Usage(200, 20)))
    assert story.state.execution.tokens_saved == 110
    execution = story.next_turn().state.execution

    assert execution is not None
    assert execution.tokens_saved == 110 + 330
    assert (execution.tokens_in, execution.tokens_out) == (300, 30)


def test_what_a_run_uses_is_counted_from_its_own_start() -> None:
    """Budgets are those of a run; what the execution paid over all its runs is kept beside them."""
    story = Story.begun(replied(usage=Usage(100, 10)))
    story.run = 2

    execution = story.tell(started(run_id="run-2", source="continue"), replied(ordinal=2)).state.execution

    assert execution is not None
    assert (execution.step_count, execution.token_count) == (1, 15)
    assert execution.tokens_in + execution.tokens_out == 125
    assert execution.run_started_at_us == story.entries[3].at_us


def test_after_a_rollback_nothing_is_under_way() -> None:
    """The head stands before the run; a question that was open there was closed by the run, and is asked anew."""
    story = Story.begun(replied(asked()), wait_opened())

    state = story.tell(RolledBack(run_id=RunId("run-2"))).state

    assert state.execution is not None
    assert state.execution.settled
    assert state.next == "tools"
    assert state.open_waits == []


def test_a_snapshot_is_not_changed_by_what_comes_later() -> None:
    """History looks at many positions of one walk; a shared dictionary would show the last state everywhere."""
    story = Story.begun(replied(*TWO_CALLS))
    state = story.state
    twin = state.snapshot()
    before = fold(story.entries)

    rest = story.tell(returned("tool-1-0"), returned("tool-1-1", call_id="call-2"), replied(ordinal=2)).entries[3:]
    fold(rest, state)

    assert twin == before
    assert twin != state


def test_a_fold_goes_on_from_a_folded_state() -> None:
    """A checkpoint is a cache: folding the rest from it gives what folding everything gives."""
    entries = Story.begun(replied(*TWO_CALLS), returned("tool-1-1", call_id="call-2"), returned("tool-1-0")).entries

    for cut in range(len(entries) + 1):
        assert fold(entries[cut:], fold(entries[:cut])) == fold(entries)


def test_every_kind_of_entry_has_a_meaning() -> None:
    """A kind that the fold does not know is a defect of the code, and stops it."""

    class Unknown(Entry, frozen=True, kw_only=True):
        """Of a newer version."""

    story = Story.begun()
    known = story.entries[0]

    assert set(KINDS.values()) == set(Entry.__subclasses__()) - {Unknown}
    with pytest.raises(AssertionError, match="Unknown"):
        fold([type(known)(3, 0, 1, 1, NOW_US, "unknown", Unknown())])
