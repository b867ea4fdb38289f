"""Entries: the closed union of what a journal records, and their stored form.

A stored entry is its `kind` and a JSON payload without defaults, so a field may be added with a default and older
journals still read. `emitted` holds the custom stream events that came between this entry and the one before it:
they were sent live, and the stream is rebuilt from here.
"""

from typing import Any, Literal

import msgspec

from threadmark.state.entries.ids import ExecutionId, RunId, StepKey
from threadmark.state.entries.message import Message, Usage

__all__ = [
    "KINDS",
    "Entry",
    "Failure",
    "ModelReplied",
    "Outcome",
    "Recalled",
    "Recorded",
    "RolledBack",
    "RunSettled",
    "RunStarted",
    "SeenView",
    "StateUpdated",
    "StepFailed",
    "StepIntended",
    "ToolReturned",
    "TurnStarted",
    "ViewAct",
    "ViewChanged",
    "WaitAnswered",
    "WaitOpened",
    "WaitSuperseded",
    "decode",
    "encode",
    "kind_of",
]

ViewAct = Literal["compacted", "restored", "undone", "activated", "pinned", "erased", "fell_back"]
Outcome = Literal["ok", "error", "cancelled", "unknown", "refused"]


class Failure(msgspec.Struct, frozen=True):
    """An error as users see it: its class and its sentence."""

    error: str
    message: str


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What all entries share."""

    emitted: tuple[Any, ...] = ()


class RunStarted(Entry, frozen=True, kw_only=True):
    """A run entered the thread, with its input.

    `source` is `input` (new messages), `fork` (from a checkpoint, without input), `resume` (an answer came) or
    `continue` (no input: go on where the thread stopped). `from_seq` is the position that a fork chose.
    """

    run_id: RunId
    execution_id: ExecutionId
    assistant: str
    source: Literal["input", "fork", "resume", "continue"]
    version: str = "1"
    messages: tuple[Message, ...] = ()
    from_seq: int | None = None


class TurnStarted(Entry, frozen=True, kw_only=True):
    """A worker began a turn of the run; `attempt` counts the turns of the run from 1."""

    worker_id: str
    attempt: int


class SeenView(msgspec.Struct, frozen=True, kw_only=True):
    """The compacted view that a model call was shown; equal hashes name equal messages."""

    view_id: str
    version: int
    render_hash: str


class ModelReplied(Entry, frozen=True, kw_only=True):
    """The model answered. `cuts` are the lengths (code points) of the streamed text deltas, in order.

    `view` is what it was shown of a compacted thread; without it, the whole transcript.
    """

    step_key: StepKey
    message: Message
    model: str
    usage: Usage
    attempt: int = 1
    finish_reason: str = "stop"
    cuts: tuple[int, ...] = ()
    invalid_calls: dict[str, str] = {}  #: call id -> why its arguments cannot be used
    duration_us: int = 0
    view: SeenView | None = None


class Recalled(Entry, frozen=True, kw_only=True):
    """What memory was asked for the message `message_id`, and all that it answered: it is never asked again for it.

    Everything that memory says is kept as it said it; state knows none of its words. `block` is what the model is
    shown. `unavailable` has a `failure`, and the run goes on without.
    """

    step_key: StepKey
    message_id: str
    question: dict[str, Any]
    status: Literal["ok", "unavailable"] = "ok"
    recall_id: str | None = None
    answers: tuple[dict[str, Any], ...] = ()
    withheld: dict[str, int] = {}
    recipe: str | None = None
    block: str = ""
    attempt: int = 1
    failure: Failure | None = None
    duration_us: int = 0


class StepIntended(Entry, frozen=True, kw_only=True):
    """A tool is about to be called; recorded before the call for `keyed` and `once` tools."""

    step_key: StepKey
    effect: str
    idempotency_key: str


class StepFailed(Entry, frozen=True, kw_only=True):
    """An attempt of a step failed; the next one is due at `retry_at_us` (epoch microseconds), unless it was `final`."""

    step_key: StepKey
    attempt: int
    failure: Failure
    retry_at_us: int = 0
    final: bool = False


class ToolReturned(Entry, frozen=True, kw_only=True):
    """What a tool call came to; the one result of its step. `value` is spelled (see
    `threadmark.state.entries.value`).
    """

    step_key: StepKey
    call_id: str
    tool: str
    outcome: Outcome
    message_id: str
    value: Any = None
    failure: Failure | None = None
    attempt: int = 1
    resolved_by: str | None = None  #: who settled a step in doubt
    duration_us: int = 0


class WaitOpened(Entry, frozen=True, kw_only=True):
    """The run asks a person: to approve a call, or what became of a step in doubt."""

    wait_id: str
    step_key: StepKey
    kind: Literal["approval", "in_doubt"]
    tool: str
    arguments: dict[str, Any]
    shown_digest: str  #: SHA-256 of the canonical JSON of tool and arguments
    effect: str | None = None  #: of the tool when it was asked


class WaitAnswered(Entry, frozen=True, kw_only=True):
    """A person's answer, folded in by the holder; who and when."""

    wait_id: str
    step_key: StepKey
    value: Any
    answered_by: str
    answered_at_us: int


class WaitSuperseded(Entry, frozen=True, kw_only=True):
    """The question fell away because the thread moved on without an answer."""

    wait_id: str
    step_key: StepKey


class RunSettled(Entry, frozen=True, kw_only=True):
    """The run ended; `reason` names the budget, the cancellation or the pause behind it."""

    run_id: RunId
    status: str
    reason: str | None = None
    failure: Failure | None = None
    paused_at: Literal["model", "tools"] | None = None  #: the node that an `interrupt_before/after` stopped at


class StateUpdated(Entry, frozen=True, kw_only=True):
    """Messages were written from outside: appended, replaced by id, or removed."""

    messages: tuple[Message, ...] = ()
    removed: tuple[str, ...] = ()
    as_node: str | None = None
    by: str = ""


class RolledBack(Entry, frozen=True, kw_only=True):
    """The head moved back to before a run; its entries stay on the branch that was left."""

    run_id: RunId


class ViewChanged(Entry, frozen=True, kw_only=True):
    """What the model is shown of the thread has changed. No message has: nothing of it was said here.

    `act` is what was done: a view fell back where an edit or a fork made its summaries untrue. `covers` are the first
    and last seq that a compaction took out of the view.
    """

    view_id: str
    version: int
    act: ViewAct
    by: str = ""
    compaction_id: str | None = None
    covers: tuple[int, int] | None = None


KINDS: dict[str, type[Entry]] = {
    "run_started": RunStarted,
    "turn_started": TurnStarted,
    "model_replied": ModelReplied,
    "recalled": Recalled,
    "step_intended": StepIntended,
    "step_failed": StepFailed,
    "tool_returned": ToolReturned,
    "wait_opened": WaitOpened,
    "wait_answered": WaitAnswered,
    "wait_superseded": WaitSuperseded,
    "run_settled": RunSettled,
    "state_updated": StateUpdated,
    "rolled_back": RolledBack,
    "view_changed": ViewChanged,
}
_KIND_OF = {cls: kind for kind, cls in KINDS.items()}
_DECODERS = {kind: msgspec.json.Decoder(cls) for kind, cls in KINDS.items()}
_ENCODER = msgspec.json.Encoder()


class Recorded(msgspec.Struct, frozen=True):
    """An entry in its place: `seq` and `branch` in the thread, under which `fence`, for which run, and when."""

    seq: int
    branch: int
    run: int | None  #: number of the run in the run table
    fence: int
    at_us: int  #: epoch microseconds
    kind: str
    entry: Entry


def kind_of(entry: Entry) -> str:
    """The stored name of the entry's class."""
    return _KIND_OF[type(entry)]


def encode(entry: Entry) -> bytes:
    """The JSON payload of an entry."""
    return _ENCODER.encode(entry)


def decode(kind: str, payload: bytes) -> Entry:
    """The entry behind a stored payload. Raises KeyError for a kind of a newer version."""
    return _DECODERS[kind].decode(payload)
