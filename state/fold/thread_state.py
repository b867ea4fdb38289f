"""The state of a thread, as the fold of its journal gives it."""

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
    """Where a message stands in the journal; no run has said what was written from outside."""

    seq: int
    run_id: str | None
    at_us: int  #: epoch microseconds


class Place(NamedTuple):
    """Where a message stands in the journal: the entry that brought it, and the one that last wrote it."""

    seq: int
    ordinal: int  #: among the messages of that entry
    written_seq: int


@dataclass(slots=True)
class Call:
    """One tool call of the reply that the thread stands at."""

    step_key: StepKey
    call: ToolCall
    outcome: Outcome | None = None  #: None while it has no result
    result: Message | None = None  #: joins the messages when the last call of the reply has one
    result_said: "Said | None" = None
    invalid: str | None = None  #: why its arguments cannot be used
    effect: str | None = None  #: known once an intent is recorded
    intended_fence: int | None = None  #: the fence under which the last intent was recorded
    intent_count: int = 0
    failure_count: int = 0
    attempt_count: int = 0  #: ordinal of the attempt that failed last
    retry_at_us: int = 0
    last_failure: Failure | None = None
    ready_turn: int = 0  #: the turn of the execution in which its present attempt could first begin
    wait_id: str | None = None
    wait_kind: str | None = None
    wait_open: bool = False
    wait_count: int = 0
    asked_effect: str | None = None  #: of the tool when its approval was asked for
    approval: Any = None  #: the answer to its approval, once there is one
    resolution: Any = None  #: the answer to its doubt, until the next intent
    answered_by: str | None = None

    def attempt(self, turn_count: int) -> int:
        """The ordinal of an attempt made now: failures and interrupted turns before it count."""
        if self.effect == "once":
            return max(1, self.intent_count)
        return 1 + self.attempt_count + max(0, turn_count - self.ready_turn)


@dataclass(slots=True)
class Execution:
    """The work that the thread is doing: a run and those that resumed it."""

    execution_id: ExecutionId
    run: int | None
    run_id: str
    assistant: str
    run_started_at_us: int
    turn_count: int = 0  #: turns over all its runs
    ready_turn: int = 1  #: the turn in which the present model call could first begin
    attempt: int = 0  #: turns of its present run
    model_count: int = 0
    recall_count: int = 0  #: questions put to memory
    step_count: int = 0  #: of its present run
    model_failure_count: int = 0
    model_attempt_count: int = 0  #: ordinal of the attempt that failed last
    model_retry_at_us: int = 0
    model_failed: bool = False  #: the model call failed for good
    model_last_failure: Failure | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_before: int = 0  #: what its earlier runs used
    tokens_saved: int = 0  #: tokens of recorded replies that a later turn did not pay again
    settled: bool = False
    paused_at: Node | None = None
    pause_taken: bool = False  #: a run went on from the pause, so it does not stop there again

    @property
    def token_count(self) -> int:
        """Tokens that its present run used."""
        return self.tokens_in + self.tokens_out - self.tokens_before

    @property
    def model_attempt(self) -> int:
        """The ordinal of a model call made now."""
        return 1 + self.model_attempt_count + max(0, self.turn_count - self.ready_turn)


@dataclass(frozen=True, slots=True)
class Position:
    """A place to look at and to fork from: after the entry at `seq`."""

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
    """The state of a thread after `seq`. `apply` moves it by one entry."""

    seq: int = 0
    by_id: dict[str, Message] = field(default_factory=dict)  #: in order; a message of the same id takes the old place
    places: dict[str, Place] = field(default_factory=dict)  #: by message id
    next: Node | None = None
    calls: dict[StepKey, Call] = field(default_factory=dict)
    execution: Execution | None = None
    position: Position | None = None
    failure: Failure | None = None  #: why the last run failed
    update_count: int = 0  #: updates from outside
    recalled: Recalled | None = None  #: memory's last answer
    view_id: str | None = None  #: what the journal last said that the model is shown; None: everything
    said: dict[str, Said] = field(default_factory=dict)  #: by message id

    @property
    def messages(self) -> list[Message]:
        """The transcript."""
        return list(self.by_id.values())

    @property
    def open_calls(self) -> list[Call]:
        """Calls without a result, in the order in which the model asked."""
        return [each for each in self.calls.values() if each.outcome is None]

    @property
    def open_waits(self) -> list[Call]:
        """Calls that a person is asked about."""
        return [each for each in self.calls.values() if each.wait_open]

    @property
    def last_human(self) -> Message | None:
        """What a person said last."""
        return next((each for each in reversed(self.by_id.values()) if each.type == "human"), None)

    @property
    def recalled_now(self) -> Recalled | None:
        """What memory answered for what a person said last, if it was asked."""
        last, recalled = self.last_human, self.recalled
        return recalled if last is not None and recalled is not None and recalled.message_id == last.id else None

    @property
    def last_type(self) -> str | None:
        """The type of the last message."""
        last = next(reversed(self.by_id.values()), None)
        return None if last is None else last.type

    def merge(self, messages: Iterable[Message], said: Said) -> None:
        """Append messages, or put them in the place of those that have their ids."""
        for ordinal, each in enumerate(messages):
            before = self.places.get(each.id)
            place = (said.seq, ordinal) if before is None else before[:2]
            self.places[each.id] = Place(*place, written_seq=said.seq)
            self.by_id[each.id], self.said[each.id] = each, said
            if self.recalled is not None and self.recalled.message_id == each.id:
                # Other words under the same id are another question.
                self.recalled = None

    def remove(self, message_id: str) -> None:
        """Take a message out of the transcript, if it is there."""
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
