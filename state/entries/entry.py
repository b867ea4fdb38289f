"""Entries: the closed union of what a journal records, and their stored form.

A stored entry is its `kind` and a JSON payload without defaults. A field may therefore be added with a default, and
older journals stay readable. `emitted` holds the custom stream events between the previous entry and this one: they
were sent live, and the stream is rebuilt from here.
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
    """An error as users see it: its class and its message."""

    error: str
    message: str


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The fields that all entries share."""

    emitted: tuple[Any, ...] = ()


class RunStarted(Entry, frozen=True, kw_only=True):
    """A run entered the thread, with its input.

    `source` is `input` (new messages), `fork` (from a checkpoint, without input), `resume` (with an answer) or
    `continue` (no input: continue where the thread stopped). `from_seq` is the position that a fork starts from.
    """

    run_id: RunId
    execution_id: ExecutionId
    assistant: str
    source: Literal["input", "fork", "resume", "continue"]
    version: str = "1"
    messages: tuple[Message, ...] = ()
    from_seq: int | None = None


class TurnStarted(Entry, frozen=True, kw_only=True):
    """A worker began a turn of the run; `attempt` numbers the turns of the run from 1."""

    worker_id: str
    attempt: int


class SeenView(msgspec.Struct, frozen=True, kw_only=True):
    """The compacted view that a model call was sent; equal hashes mean equal messages."""

    view_id: str
    version: int
    render_hash: str


class ModelReplied(Entry, frozen=True, kw_only=True):
    """The model replied. `cuts` are the lengths (code points) of the streamed text deltas, in order.

    `view` is the view that it was sent of a compacted thread; None if it was sent the whole transcript.
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
    """A recall for the message `message_id`, with memory's complete answer; it is never repeated for that message.

    Memory's answer is stored unchanged, and state does not interpret it. `block` is what the model is sent. If memory
    was unavailable, `failure` is set and the run continues without it.
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
    """An attempt of a step failed; the next is due at `retry_at_us` (epoch microseconds), unless it was `final`."""

    step_key: StepKey
    attempt: int
    failure: Failure
    retry_at_us: int = 0
    final: bool = False


class ToolReturned(Entry, frozen=True, kw_only=True):
    """The outcome of a tool call: the one result of its step. `value` is encoded (see
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
    resolved_by: str | None = None  #: who resolved a step in doubt
    duration_us: int = 0


class WaitOpened(Entry, frozen=True, kw_only=True):
    """The run asks a person to approve a call, or what became of a step in doubt."""

    wait_id: str
    step_key: StepKey
    kind: Literal["approval", "in_doubt"]
    tool: str
    arguments: dict[str, Any]
    shown_digest: str  #: SHA-256 of the canonical JSON of tool and arguments
    effect: str | None = None  #: the tool's effect when the question was asked


class WaitAnswered(Entry, frozen=True, kw_only=True):
    """A person's answer, folded in by the holder, with who gave it and when."""

    wait_id: str
    step_key: StepKey
    value: Any
    answered_by: str
    answered_at_us: int


class WaitSuperseded(Entry, frozen=True, kw_only=True):
    """The question lapsed because the thread moved on without an answer."""

    wait_id: str
    step_key: StepKey


class RunSettled(Entry, frozen=True, kw_only=True):
    """The run ended; `reason` names the budget, the cancellation or the pause that ended it."""

    run_id: RunId
    status: str
    reason: str | None = None
    failure: Failure | None = None
    paused_at: Literal["model", "tools"] | None = None  #: the node at which `interrupt_before/after` stopped it


class StateUpdated(Entry, frozen=True, kw_only=True):
    """Messages were written from outside: appended, replaced by id, or removed."""

    messages: tuple[Message, ...] = ()
    removed: tuple[str, ...] = ()
    as_node: str | None = None
    by: str = ""


class RolledBack(Entry, frozen=True, kw_only=True):
    """The head moved back to before a run; the run's entries stay on the branch that was left."""

    run_id: RunId


class ViewChanged(Entry, frozen=True, kw_only=True):
    """The view that the model is sent of the thread has changed; its messages have not.

    `act` says how: for instance, a view fell back because an edit or a fork invalidated its summaries. `covers` are the
    first and the last seq that a compaction took out of the view.
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
    """An entry with its place: its `seq` and `branch` in the thread, its fence, its run, and its time."""

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
    """The entry of a stored payload. Raises KeyError for a kind of a newer version."""
    return _DECODERS[kind].decode(payload)
