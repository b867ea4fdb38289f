"""A run as events of the dialect: a pure function of its entries and of what flashed between them.

A live reader and a later one get the same events with the same ids: what flashed in a gap is in the entry that ended
the gap (`cuts` say how a reply streamed, `emitted` what tools sent), and live events are not sent again.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from threadmark.app.wire.conversations.chunk_schema import delta_chunk, final_chunk, partial_message
from threadmark.app.wire.conversations.event_ids import Place, flash_slot
from threadmark.app.wire.conversations.interrupt_schema import interrupt_of_call
from threadmark.app.wire.conversations.message_schema import message_to_wire
from threadmark.app.wire.event_json import join_values, spell_event
from threadmark.state import (
    Call,
    Message,
    ModelReplied,
    Recorded,
    RunSettled,
    RunStarted,
    ThreadState,
    ToolReturned,
    TurnStarted,
    ViewChanged,
    WaitOpened,
    apply,
    plain,
)
from threadmark.workers.feeds.feed import Flash

__all__ = ["MODES", "Event", "RunEvents", "RunFacts", "StreamMode"]

StreamMode = Literal["values", "updates", "messages-tuple", "messages", "custom"]
MODES: tuple[StreamMode, ...] = get_args(StreamMode)

#: Slots of an entry's own events, in the order in which they are sent.
_METADATA, _CHUNK, _ANNOUNCED, _COMPLETE, _UPDATES, _VALUES, _ERROR = 0, 1, 2, 3, 4, 5, 9
#: Slots of a flash, from its first one.
_AS_TUPLE, _AS_ANNOUNCED, _AS_PARTIAL = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its name, its data as one line of JSON, and its place (None: it is not sent a second time)."""

    name: str
    data: bytes
    place: Place | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What the events of a run say about it."""

    run_id: str
    thread_id: str
    assistant: str
    assistant_id: str
    metadata: dict[str, Any]
    tags: Sequence[str]


class RunEvents:
    """Tells a run, entry by entry and flash by flash, in the modes that are wanted, after a place.

    `state` is the thread's before the run's first entry, which is the one after `seq`; it is moved along.
    """

    def __init__(
        self, facts: RunFacts, modes: Collection[StreamMode], after: Place, *, state: ThreadState, seq: int
    ) -> None:
        self._facts = facts
        self._modes = frozenset(modes)
        self._after = after
        self._state = state
        self._attempt = 1
        self._begun = False
        self._asked: set[str] = set()
        self._reply_id: str | None = None
        self._reply_text = ""
        self._spelled: dict[str, tuple[Message, bytes]] = {}
        self.seq = seq  #: of the last entry sent
        self.flash_count = 0  #: flashes sent since that entry

    @property
    def message_count(self) -> int:
        """Messages of the thread by now."""
        return len(self._state.by_id)

    def of_flash(self, flash: Flash) -> Iterator[Event]:
        """The events of the next flash after the last entry; none for any other flash."""
        if (flash.after_seq, flash.ordinal) != (self.seq, self.flash_count + 1):
            return
        self.flash_count += 1
        slot = flash_slot(flash.ordinal)
        if flash.message_id is None:
            yield from self._event(slot, "custom", "custom", lambda: plain(flash.data))
            return
        is_new = flash.message_id != self._reply_id
        if is_new:
            self._reply_id, self._reply_text = flash.message_id, ""
        self._reply_text += flash.data
        yield from self._streamed(flash.data, flash.message_id, slot, is_new=is_new)

    def of_entry(self, at: Recorded) -> Iterator[Event]:
        """The events still to be sent of the gap before the entry, then the entry's own events."""
        if at.seq - 1 != self.seq:
            self.seq, self.flash_count = at.seq - 1, 0
        for flash in _recorded_flashes(at)[self.flash_count :]:
            yield from self.of_flash(flash)
        self.seq, self.flash_count = at.seq, 0
        yield from self._own(at)

    def _own(self, at: Recorded) -> Iterator[Event]:
        entry, calls = at.entry, list(self._state.calls.values())
        step = self._step
        apply(self._state, at)
        self._begun = self._begun or isinstance(entry, RunStarted)
        if not self._begun:
            # Before its start a run only closes what an earlier one left open.
            return
        match entry:
            case RunStarted():
                yield from self._attempt_begun(1)
                yield from self._values()
            case TurnStarted() if entry.attempt > 1:
                yield from self._attempt_begun(entry.attempt)
            case ModelReplied():
                yield from self._replied(entry, step)
            case ToolReturned():
                yield from self._returned(entry, calls, step)
            case WaitOpened():
                yield from self._waits(entry)
            case ViewChanged():
                yield from self._event(_UPDATES, "updates", "updates", lambda: {"compaction": _view_change(entry)})
            case RunSettled():
                yield from self._settled(entry)
            case _:
                pass

    def _attempt_begun(self, attempt: int) -> Iterator[Event]:
        self._attempt = attempt
        yield from self._event(_METADATA, None, "metadata", lambda: {"run_id": self._facts.run_id, "attempt": attempt})

    def _streamed(self, text: str, message_id: str, slot: int, *, is_new: bool) -> Iterator[Event]:
        metadata = self._metadata("model", self._step)
        yield from self._event(
            slot + _AS_TUPLE, "messages-tuple", "messages", lambda: [delta_chunk(text, message_id), metadata]
        )
        if is_new:
            yield from self._announced(slot + _AS_ANNOUNCED, message_id, metadata)
        yield from self._event(
            slot + _AS_PARTIAL, "messages", "messages/partial", lambda: [partial_message(self._reply_text, message_id)]
        )

    def _replied(self, entry: ModelReplied, step: int) -> Iterator[Event]:
        metadata, message = self._metadata("model", step), entry.message
        yield from self._event(_CHUNK, "messages-tuple", "messages", lambda: [final_chunk(entry), metadata])
        if message.id != self._reply_id:
            yield from self._announced(_ANNOUNCED, message.id, metadata)
        yield from self._event(_COMPLETE, "messages", "messages/complete", lambda: [message_to_wire(message)])
        self._reply_id = None
        yield from self._event(_UPDATES, "updates", "updates", lambda: _update("model", [message]))
        yield from self._values()

    def _returned(self, entry: ToolReturned, calls: Sequence[Call], step: int) -> Iterator[Event]:
        results = [call.result for call in calls if call.result is not None]
        metadata = self._metadata("tools", step)
        own = [message_to_wire(result) for result in results if result.id == entry.message_id]
        yield from self._event(_CHUNK, "messages-tuple", "messages", lambda: [*own, metadata])
        yield from self._announced(_ANNOUNCED, entry.message_id, metadata)
        yield from self._event(_COMPLETE, "messages", "messages/complete", lambda: own)
        if not self._state.calls:
            yield from self._event(_UPDATES, "updates", "updates", lambda: _update("tools", results))
            yield from self._values()

    def _waits(self, entry: WaitOpened) -> Iterator[Event]:
        self._asked.add(entry.wait_id)
        asked = [call for call in self._state.open_waits if call.wait_id == entry.wait_id]
        yield from self._event(_UPDATES, "updates", "updates", lambda: _interrupts(asked))
        if any(call.wait_kind == "in_doubt" for call in self._state.open_waits):
            # Such a run does not end here, it waits: these are its last events for a while.
            yield from self._values(self._state.open_waits)

    def _settled(self, entry: RunSettled) -> Iterator[Event]:
        waiting = self._state.open_waits
        unsent = [call for call in waiting if call.wait_id not in self._asked]
        if unsent or entry.paused_at is not None:
            yield from self._event(_UPDATES, "updates", "updates", lambda: _interrupts(unsent))
        if waiting:
            yield from self._values(waiting)
        failure = entry.failure
        if failure is not None:
            shown = {"error": failure.error, "message": failure.message}
            yield from self._event(_ERROR, None, "error", lambda: shown)

    def _announced(self, slot: int, message_id: str, metadata: dict[str, Any]) -> Iterator[Event]:
        yield from self._event(slot, "messages", "messages/metadata", lambda: {message_id: {"metadata": metadata}})

    def _values(self, waiting: Sequence[Call] = ()) -> Iterator[Event]:
        if self._wants(_VALUES, "values"):
            interrupts = [interrupt_of_call(call) for call in waiting]
            messages = [self._spell(message) for message in self._state.by_id.values()]
            yield Event("values", join_values(messages, interrupts), Place(self.seq, _VALUES))

    def _spell(self, message: Message) -> bytes:
        held = self._spelled.get(message.id)
        if held is None or held[0] is not message:
            held = self._spelled[message.id] = (message, spell_event(message_to_wire(message)))
        return held[1]

    def _event(self, slot: int, mode: StreamMode | None, name: str, make: Callable[[], Any]) -> Iterator[Event]:
        if self._wants(slot, mode):
            yield Event(name, spell_event(make()), Place(self.seq, slot))

    def _wants(self, slot: int, mode: StreamMode | None) -> bool:
        return Place(self.seq, slot) > self._after and (mode is None or mode in self._modes)

    @property
    def _step(self) -> int:
        """The step that the node to come is."""
        position = self._state.position
        return 0 if position is None else position.step + 1

    def _metadata(self, node: str, step: int) -> dict[str, Any]:
        facts = self._facts
        return {
            **facts.metadata,
            "run_id": facts.run_id,
            "thread_id": facts.thread_id,
            "graph_id": facts.assistant,
            "assistant_id": facts.assistant_id,
            "run_attempt": self._attempt,
            "tags": list(facts.tags),
            "langgraph_node": node,
            "langgraph_step": step,
        }


def _recorded_flashes(at: Recorded) -> list[Flash]:
    """What flashed in the gap that the entry ended, as the entry keeps it."""
    flashes: list[Flash] = []
    entry = at.entry
    if isinstance(entry, ModelReplied) and isinstance(entry.message.content, str):
        begin = 0
        for length in entry.cuts:
            text = entry.message.content[begin : begin + length]
            begin += length
            flashes.append(_flash(at, len(flashes) + 1, text, entry.message.id))
    for data in entry.emitted:
        flashes.append(_flash(at, len(flashes) + 1, data, None))
    return flashes


def _flash(at: Recorded, ordinal: int, data: Any, message_id: str | None) -> Flash:
    kind: Literal["delta", "custom"] = "custom" if message_id is None else "delta"
    return Flash(after_seq=at.seq - 1, ordinal=ordinal, kind=kind, data=data, message_id=message_id)


def _update(node: str, messages: Sequence[Message]) -> dict[str, Any]:
    return {node: {"messages": [message_to_wire(each) for each in messages]}}


def _view_change(entry: ViewChanged) -> dict[str, Any]:
    return {
        "view_id": entry.view_id,
        "version": entry.version,
        "act": entry.act,
        "compaction_id": entry.compaction_id,
        "covers": entry.covers and {"from_seq": entry.covers[0], "to_seq": entry.covers[1]},
    }


def _interrupts(calls: Sequence[Call]) -> dict[str, Any]:
    return {"__interrupt__": [interrupt_of_call(call) for call in calls]}
