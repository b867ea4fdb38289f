"""Events of a run: what each entry becomes, and that live and late readers receive the same."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.run_journal import Story, flashes_before
from threadmark.app.wire.conversations.event_ids import START, Place
from threadmark.app.wire.conversations.event_schema import MODES, Event, RunEvents, RunFacts, StreamMode
from threadmark.state import Failure, Recorded, ThreadState, ViewChanged, fold

FACTS = RunFacts(
    run_id="run-1", thread_id="thread-1", assistant="chat", assistant_id="assistant-1", metadata={"k": 1}, tags=["t"]
)


def new_stream(modes: Iterable[StreamMode] = MODES, after: Place = START) -> RunEvents:
    """The events of a run from its beginning."""
    return RunEvents(FACTS, list(modes), after, state=ThreadState(), seq=0)


def events_of(story: Story, modes: Iterable[StreamMode] = MODES, after: Place = START) -> list[Event]:
    """The events that a reader receives who joins after the end."""
    events = new_stream(modes, after)
    return [event for entry in story.entries for event in events.of_entry(entry)]


def names(events: Iterable[Event]) -> list[str]:
    """The names of the events."""
    return [event.name for event in events]


def data(events: Iterable[Event], name: str) -> list[Any]:
    """The data of the events of that name."""
    return [json.loads(event.data) for event in events if event.name == name]


def whole_story() -> Story:
    """Two replies, two parallel calls, events of tools, a crash in between, an approval."""
    story = Story().start().reply("Let ", "me ", "see.", calls=("look", "look"))
    story.result(1, 0, emitted=({"progress": 1}, {"progress": 2})).turn(2).result(1, 1, emitted=("half",))
    return story.reply("Shall ", "I?", calls=("pay",)).ask(2, 0).settle()


def test_a_run_begins_with_its_metadata_and_its_input() -> None:
    """`metadata` is the first event, whatever the modes; the values follow."""
    events = events_of(Story().start("hi"), ["values"])

    assert names(events) == ["metadata", "values"]
    assert data(events, "metadata") == [{"run_id": "run-1", "attempt": 1}]
    assert [message["content"] for message in data(events, "values")[0]["messages"]] == ["hi"]


def test_a_changed_view_is_streamed_as_an_update() -> None:
    """Which view, by what, and which entries left it; no message of the run is touched."""
    change = ViewChanged(view_id="view-2", version=2, act="compacted", compaction_id="c-1", covers=(1, 9))
    events = events_of(Story().start().note(change).reply("Done."), ["updates"])

    assert data(events, "updates")[0] == {
        "compaction": {
            "view_id": "view-2",
            "version": 2,
            "act": "compacted",
            "compaction_id": "c-1",
            "covers": {"from_seq": 1, "to_seq": 9},
        }
    }
    assert names(events) == ["metadata", "updates", "updates"]


def test_another_attempt_is_streamed() -> None:
    """A turn after a crash says so, with its number."""
    events = events_of(Story().start().turn(2).turn(3), [])

    assert [each["attempt"] for each in data(events, "metadata")] == [1, 2, 3]


def test_a_node_updates_then_the_values_follow() -> None:
    """`updates` name the node and what it added; results of parallel calls come together, in the order of the calls."""
    story = Story().start().reply(calls=("a", "b")).result(1, 1, "second").result(1, 0, "first").reply("Done.")

    events = events_of(story, ["updates", "values"])

    assert names(events) == ["metadata", "values", *["updates", "values"] * 3]
    model, tools, last = data(events, "updates")
    assert [call["name"] for call in model["model"]["messages"][0]["tool_calls"]] == ["a", "b"]
    assert [message["content"] for message in tools["tools"]["messages"]] == ["first", "second"]
    assert last["model"]["messages"][0]["content"] == "Done."
    assert len(data(events, "values")[-1]["messages"]) == 5


def test_a_reply_streams_as_chunks_that_join_to_it() -> None:
    """`messages-tuple`: text piece by piece; the last chunk has the calls and the usage."""
    story = Story().start().reply("Let ", "me ", "see.", calls=("look",)).result(1, 0, {"a": 1})

    pairs = data(events_of(story, ["messages-tuple"]), "messages")

    chunks = [chunk for chunk, _ in pairs if chunk["type"] == "AIMessageChunk"]
    assert "".join(chunk["content"] for chunk in chunks) == "Let me see."
    assert {chunk["id"] for chunk in chunks} == {"reply-1"}
    assert chunks[-1]["chunk_position"] == "last"
    assert chunks[-1]["usage_metadata"] == {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    assert [call["args"] for call in chunks[-1]["tool_call_chunks"]] == ['{"index":0}']
    result, metadata = pairs[-1]
    assert (result["type"], result["content"], metadata["langgraph_node"]) == ("tool", '{"a":1}', "tools")
    assert [each["langgraph_node"] for _, each in pairs[:-1]] == ["model"] * 4
    assert pairs[0][1] == {
        "k": 1,
        "run_id": "run-1",
        "thread_id": "thread-1",
        "graph_id": "chat",
        "assistant_id": "assistant-1",
        "run_attempt": 1,
        "tags": ["t"],
        "langgraph_node": "model",
        "langgraph_step": 0,
    }


def test_a_reply_grows_in_partial_messages() -> None:
    """`messages`: each message is announced once, grows, and is complete."""
    events = events_of(Story().start().reply("a", "b").settle(), ["messages"])

    assert names(events)[1:] == ["messages/metadata", "messages/partial", "messages/partial", "messages/complete"]
    assert [each[0]["content"] for each in data(events, "messages/partial")] == ["a", "ab"]
    assert list(data(events, "messages/metadata")[0]) == ["reply-1"]


def test_a_reply_that_came_in_one_piece_is_streamed_whole() -> None:
    """A reply without cuts has its text in the last chunk, and is announced before it is complete."""
    story = Story().start().reply(calls=("look",))

    assert names(events_of(story, ["messages"]))[1:] == ["messages/metadata", "messages/complete"]


def test_an_open_question_is_an_interrupt() -> None:
    """`updates` have it when it is asked, the last `values` when the run has ended for it."""
    story = Story().start().reply(calls=("pay",)).ask(1, 0).settle()

    events = events_of(story, ["values", "updates"])

    assert names(events)[-2:] == ["updates", "values"]
    interrupt = data(events, "updates")[-1]["__interrupt__"]
    assert [each["value"]["tool"] for each in interrupt] == ["pay"]
    assert data(events, "values")[-1]["__interrupt__"] == interrupt
    assert "__interrupt__" not in data(events, "values")[-2]


def test_a_question_of_an_earlier_run_is_streamed_again() -> None:
    """A run that ends at it without having asked it streams it, too: its reader may know of no other run."""
    story = Story().start().reply(calls=("look", "pay")).ask(1, 1).settle()
    state, seen = fold(story.entries), len(story.entries)
    story.resume().result(1, 0).settle()
    events = RunEvents(FACTS, ["updates", "values"], START, state=state, seq=seen)

    later = [event for entry in story.entries[seen:] for event in events.of_entry(entry)]

    assert names(later) == ["metadata", "values", "updates", "values"]
    assert [each["value"]["tool"] for each in data(later, "updates")[0]["__interrupt__"]] == ["pay"]


def test_a_doubt_is_streamed_although_the_run_continues() -> None:
    """Such a run does not end, so the interrupt is streamed when the doubt arises, with the values."""
    story = Story().start().reply(calls=("pay",)).ask(1, 0, "in_doubt")

    events = events_of(story, ["values", "updates"])

    assert names(events)[-2:] == ["updates", "values"]
    assert data(events, "values")[-1]["__interrupt__"][0]["value"]["kind"] == "in_doubt"


def test_a_pause_is_an_interrupt_without_a_question() -> None:
    """`interrupt_before` and `interrupt_after` stop the run; there is nothing to answer."""
    events = events_of(Story().start().reply(calls=("look",)).settle(paused_at="tools"), ["values", "updates"])

    assert data(events, "updates")[-1] == {"__interrupt__": []}
    assert names(events)[-1] == "updates"


def test_a_failure_is_the_last_event() -> None:
    """Whatever the modes, with the error's class and sentence."""
    events = events_of(Story().start().settle("error", failure=Failure("Boom", "It broke.")), [])

    assert names(events) == ["metadata", "error"]
    assert data(events, "error") == [{"error": "Boom", "message": "It broke."}]


def test_custom_events_are_streamed_as_they_were_sent() -> None:
    """Between the entries around them, in order; what JSON cannot hold stays spelled."""
    story = Story().start().reply(calls=("look",))
    story.result(1, 0, emitted=({"a": 1}, {"$$ref": 2}, {"x": {"$float": "NaN"}}))

    assert data(events_of(story, ["custom"]), "custom") == [{"a": 1}, {"$ref": 2}, {"x": {"$float": "NaN"}}]


def test_what_a_run_closes_before_its_start_is_not_its_own() -> None:
    """Calls that an earlier run left open get their results in this run's entries; its stream begins with itself."""
    story = Story().start().reply(calls=("look",))
    state, seen = fold(story.entries), len(story.entries)
    story.result(1, 0, "cancelled").start("next")
    events = RunEvents(FACTS, MODES, START, state=state, seq=seen)

    later = [event for entry in story.entries[seen:] for event in events.of_entry(entry)]

    assert names(later) == ["metadata", "values"]
    assert [message["type"] for message in data(later, "values")[0]["messages"]] == ["human", "ai", "tool"]


def test_no_two_events_have_one_place() -> None:
    """Places rise strictly, also where one piece of a reply is streamed in several modes."""
    places = [event.place for event in events_of(whole_story())]

    assert None not in places
    assert places == sorted(set(places), key=lambda place: place or START)


@given(st.data())
def test_a_live_reader_receives_what_a_late_one_does(choice: st.DataObject) -> None:
    """However much of each gap was seen live before its entry came: the same events, in the same places."""
    story, live = whole_story(), new_stream()
    received: list[Event] = []

    for entry in story.entries:
        shown = flashes_before(entry)
        for flash in shown[: choice.draw(st.integers(0, len(shown)))]:
            received += live.of_flash(flash)
        received += live.of_entry(entry)

    assert received == events_of(story)


@given(st.data())
def test_a_reader_that_rejoins_receives_the_rest(choice: st.DataObject) -> None:
    """After any event that was read: what follows it, nothing twice, nothing left out, in any modes."""
    modes = choice.draw(st.lists(st.sampled_from(MODES), unique=True))
    everything = events_of(whole_story(), modes)
    read_count = choice.draw(st.integers(1, len(everything)))
    last = everything[read_count - 1].place
    assert last is not None

    assert events_of(whole_story(), modes, last) == everything[read_count:]


def test_a_flash_out_of_order_is_held_back() -> None:
    """One that skips its predecessor would leave a gap: the journal replays both."""
    story, live = whole_story(), new_stream()
    first, *_ = _up_to_reply(story, live)
    shown = flashes_before(first)

    assert list(live.of_flash(shown[1])) == []
    assert [event.name for event in live.of_flash(shown[0])] == ["messages", "messages/metadata", "messages/partial"]
    assert list(live.of_flash(shown[0])) == []


def _up_to_reply(story: Story, live: RunEvents) -> list[Recorded]:
    """Stream the entries before the first reply, and return the others."""
    for entry in story.entries[:2]:
        list(live.of_entry(entry))
    return story.entries[2:]


@pytest.mark.parametrize("text", ["a\rdata: x\nevent: done\n\nid: 9", "\u2028", "\u2029", "\u0085", "\x00", "\x0b\x0c"])
def test_an_event_is_one_line_whatever_was_said(text: str) -> None:
    """No text becomes a field of the protocol, and none is changed on the way."""
    events = events_of(Story().start(text).reply(text, text))

    for event in events:
        assert len(event.data.decode().splitlines()) == 1
        assert b"\x00" not in event.data
    assert data(events, "values")[0]["messages"][0]["content"] == text
    assert data(events, "messages")[0][0]["content"] == text
