"""Events of a long thread are made beside the event loop, one at a time; those of a short one on it."""

import threading
from typing import Any

import pytest

from tests.support.run_journal import Story
from threadmark.app.runs.event_tail import MESSAGE_COUNT_MIN, _entry_events, _Look, _Tail
from threadmark.app.wire.conversations import event_schema
from threadmark.app.wire.conversations.event_ids import START
from threadmark.app.wire.conversations.event_schema import RunEvents, RunFacts
from threadmark.app.wire.event_json import join_values
from threadmark.state import Message, ThreadState

FACTS = RunFacts(run_id="r", thread_id="t", assistant="chat", assistant_id="a", metadata={}, tags=[])
REPLY_COUNT = 10
NO_PART: Any = None


@pytest.mark.parametrize("message_count", [MESSAGE_COUNT_MIN - 1, MESSAGE_COUNT_MIN])
async def test_each_event_of_a_long_thread_is_a_slice_of_its_own(
    message_count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each may repeat the whole thread: no thread makes two in a row, and no bytes wait but those of one event."""
    log: list[tuple[str, int]] = []
    on_loop: set[bool] = set()
    loop_thread = threading.get_ident()

    def join(messages: list[bytes], interrupts: list[dict[str, Any]]) -> bytes:
        data = join_values(messages, interrupts)
        on_loop.add(threading.get_ident() == loop_thread)
        log.append(("made", len(data)))
        return data

    monkeypatch.setattr(event_schema, "join_values", join)
    state = ThreadState(
        by_id={
            f"old-{number}": Message(id=f"old-{number}", type="human", content="hi") for number in range(message_count)
        }
    )
    story = Story().start()
    for _ in range(REPLY_COUNT):
        story.reply("So it is.")
    tail = _Tail(NO_PART, NO_PART, ["values"], START, NO_PART)
    tail._events = RunEvents(FACTS, ["values"], START, state=state, seq=0)

    async for event in _entry_events(tail, _Look(None, story.entries)):
        if event.name == "values":
            log.append(("taken", len(event.data)))

    made, taken = log[::2], log[1::2]
    assert [what for what, _ in made] == ["made"] * (REPLY_COUNT + 1)
    assert [what for what, _ in taken] == ["taken"] * (REPLY_COUNT + 1)
    assert [size for _, size in made] == [size for _, size in taken]
    assert on_loop == {message_count < MESSAGE_COUNT_MIN}
