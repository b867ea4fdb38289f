"""The state of a thread: the result of folding its journal."""

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from threadmark.state.entries.entry import Failure, Outcome, Recalled
from threadmark.state.entries.ids import ExecutionId, StepKey
from threadmark.state.entries.message import Message, ToolCall

__all__ = ["Call", "Execution", "Node", "Place", "Position", "Said", "ThreadState"]

Node = Literal["model", "tools"]


@dataclass(frozen=True, slots=True)
class Said:
    """The origin of a message in the journal; an external update has no run."""

    seq: int
    run_id: str | None
    at_us: int  #: epoch microseconds


class Place(NamedTuple):
    """A message's place in the journal: the entry that introduced it, and the entry that last wrote it."""

    seq: int
    ordinal: int  #: among the messages of that entry
    written_seq: int


@dataclass(slots=True)
class Call:
    """One tool call of the thread's last reply."""

    step_key: StepKey
    call: ToolCall
    outcome: Outcome | None = None  #: None while it has no result
    result: Message | None = None  #: becomes a message once every call of the reply has a result
    result_said: "Said | None" = None
    invalid: str | None = None  #: why its arguments cannot be used
    effect: str | None = None  #: None until an intent is recorded
    intended_fence: int | None = None  #: the fence under which the last intent was recorded
    intent_count: int = 0
    failure_count: int = 0
    attempt_count: int = 0  #: ordinal of the last failed attempt
    retry_at_us: int = 0
    last_failure: Failure | None = None
    ready_turn: int = 0  #: the first turn of the execution in which the present attempt could begin
    wait_id: str | None = None
    wait_kind: str | None = None
    wait_open: bool = False
    wait_count: int = 0
    asked_effect: str | None = None  #: the tool's effect when approval was requested
    approval: Any = None  #: the answer to its approval request, if any
    resolution: Any = None  #: the resolution of its doubt, until the next intent
    answered_by: str | None = None

    def attempt(self, turn_count: int) -> int:
        """The ordinal of an attempt made now; failed attempts and interrupted turns count."""
        if self.effect == "once":
            return max(1, self.intent_count)
        return 1 + self.attempt_count + max(0, turn_count - self.ready_turn)


@dataclass(slots=True)
class Execution:
    """The thread's present work: a run and the runs that resumed it."""

    execution_id: ExecutionId
    run: int | None
    run_id: str
    assistant: str
    run_started_at_us: int
    turn_count: int = 0  #: turns of all its runs
    ready_turn: int = 1  #: the first turn in which the present model call could begin
    attempt: int = 0  #: turns of the present run
    model_count: int = 0
    recall_count: int = 0  #: recalls made
    step_count: int = 0  #: steps of the present run
    model_failure_count: int = 0
    model_attempt_count: int = 0  #: ordinal of the last failed attempt
    model_retry_at_us: int = 0
    model_failed: bool = False  #: the model call failed permanently
    model_last_failure: Failure | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_before: int = 0  #: tokens that the earlier runs used
    tokens_saved: int = 0  #: tokens of recorded replies that a later turn did not pay again
    settled: bool = False
    paused_at: Node | None = None
    pause_taken: bool = False  #: a run has continued from the pause, so it does not stop there again

    @property
    def token_count(self) -> int:
        """Tokens that the present run used."""
        return self.tokens_in + self.tokens_out - self.tokens_before

    @property
    def model_attempt(self) -> int:
        """The ordinal of a model call made now."""
        return 1 + self.model_attempt_count + max(0, self.turn_count - self.ready_turn)


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the journal that clients can inspect and fork from: after the entry at `seq`."""

    seq: int
    branch: int
    at_us: int
    parent: "Position | None" = field(repr=False)
    source: Literal["input", "loop", "update", "fork"]
    step: int  #: -1 for the first input, rising by one along the branch
    next: Node | None
    run: int | None


@dataclass(slots=True)
class ThreadState:
    """The state of a thread after `seq`; `apply` advances it by one entry."""

    seq: int = 0
    by_id: dict[str, Message] = field(default_factory=dict)  #: in order; a message with a known id replaces the old one
    places: dict[str, Place] = field(default_factory=dict)  #: by message id
    next: Node | None = None
    calls: dict[StepKey, Call] = field(default_factory=dict)
    execution: Execution | None = None
    position: Position | None = None
    failure: Failure | None = None  #: why the last run failed
    update_count: int = 0  #: external updates so far
    recalled: Recalled | None = None  #: memory's last answer
    view_id: str | None = None  #: the view that the model is sent, by the last entry about it; None: everything
    said: dict[str, Said] = field(default_factory=dict)  #: by message id

    @property
    def messages(self) -> list[Message]:
        """The transcript."""
        return list(self.by_id.values())

    @property
    def open_calls(self) -> list[Call]:
        """Calls without a result, in the order in which the model made them."""
        return [each for each in self.calls.values() if each.outcome is None]

    @property
    def open_waits(self) -> list[Call]:
        """Calls with an open question to a person."""
        return [each for each in self.calls.values() if each.wait_open]

    @property
    def last_human(self) -> Message | None:
        """The last message from a person."""
        return next((each for each in reversed(self.by_id.values()) if each.type == "human"), None)

    @property
    def recalled_now(self) -> Recalled | None:
        """Memory's answer for the last message from a person, if there is one."""
        last, recalled = self.last_human, self.recalled
        return recalled if last is not None and recalled is not None and recalled.message_id == last.id else None

    @property
    def last_type(self) -> str | None:
        """The type of the last message."""
        last = next(reversed(self.by_id.values()), None)
        return None if last is None else last.type

    def merge(self, messages: Iterable[Message], said: Said) -> None:
        """Append messages; those with known ids replace the old ones."""
        for ordinal, each in enumerate(messages):
            before = self.places.get(each.id)
            place = (said.seq, ordinal) if before is None else before[:2]
            self.places[each.id] = Place(*place, written_seq=said.seq)
            self.by_id[each.id], self.said[each.id] = each, said
            if self.recalled is not None and self.recalled.message_id == each.id:
                # Different text under the same id is a new question to memory.
                self.recalled = None

    def remove(self, message_id: str) -> None:
        """Remove a message from the transcript, if present."""
        self.by_id.pop(message_id, None)
        self.places.pop(message_id, None)

    def snapshot(self) -> "ThreadState":
        """A copy that later entries do not change."""
        twin = copy.copy(self)
        twin.by_id = dict(self.by_id)
        twin.said = dict(self.said)
        twin.places = dict(self.places)
        twin.calls = {key: copy.copy(call) for key, call in self.calls.items()}
        twin.execution = copy.copy(self.execution)
        return twin
