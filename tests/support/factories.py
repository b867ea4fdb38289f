"""What tests of state and of turns are made of: messages, journals, runs, offers, and a model that has a script."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from threadmark.state import (
    Call,
    Entry,
    ExecutionId,
    Message,
    ModelReplied,
    Multitask,
    Recorded,
    Run,
    RunId,
    RunRequest,
    RunStarted,
    RunStatus,
    RunSubmission,
    StepKey,
    ThreadId,
    ThreadState,
    ToolCall,
    ToolReturned,
    TurnStarted,
    Usage,
    fold,
    kind_of,
    model_step,
)
from threadmark.workers.models import ChatModel, ModelReply, ModelRequest, to_openai

__all__ = [
    "EXECUTION",
    "NOW_US",
    "RUN",
    "TENANT",
    "USAGE",
    "Reply",
    "ScriptedModel",
    "Story",
    "a_run",
    "a_submission",
    "ai",
    "asked",
    "human",
    "replied",
    "returned",
    "started",
    "tool_result",
]

NOW_US = 1_800_000_000_000_000
TENANT = "tenant"
EXECUTION = ExecutionId("execution-1")
RUN = RunId("run-1")
USAGE = Usage(input_tokens=10, output_tokens=5)


def human(text: str = "hello", message_id: str = "human-1") -> Message:
    """What a person said."""
    return Message(id=message_id, type="human", content=text)


def ai(text: str = "hi", *calls: ToolCall, message_id: str = "ai-1") -> Message:
    """What the model said, and the calls that it asked for."""
    return Message(id=message_id, type="ai", content=text, tool_calls=calls)


def tool_result(call_id: str, text: str = "done", message_id: str = "result-1") -> Message:
    """What a tool said."""
    return Message(id=message_id, type="tool", content=text, name="look", tool_call_id=call_id)


def asked(name: str = "look", call_id: str = "call-1", **arguments: Any) -> ToolCall:
    """A call that a model asks for."""
    return ToolCall(id=call_id, name=name, arguments=arguments)


def started(
    *messages: Message,
    run_id: str = RUN,
    execution_id: str = EXECUTION,
    source: Any = "input",
    from_seq: int | None = None,
) -> RunStarted:
    """The entry by which a run enters a thread."""
    return RunStarted(
        run_id=RunId(run_id),
        execution_id=ExecutionId(execution_id),
        assistant="chat",
        source=source,
        messages=messages,
        from_seq=from_seq,
    )


def replied(
    *calls: ToolCall,
    ordinal: int = 1,
    text: str = "hi",
    usage: Usage = USAGE,
    invalid_calls: Mapping[str, str] | None = None,
) -> ModelReplied:
    """The entry of the `ordinal`-th reply of an execution."""
    return ModelReplied(
        step_key=model_step(ordinal),
        message=ai(text, *calls, message_id=f"ai-{ordinal}"),
        model="scripted",
        usage=usage,
        invalid_calls=dict(invalid_calls or {}),
    )


class Story:
    """A journal that grows entry by entry; `state` is the fold of the entries so far, `entries` the entries."""

    def __init__(self, *entries: Entry, run: int = 1, fence: int = 1, branch: int = 0) -> None:
        self.run, self.fence, self.branch = run, fence, branch
        self.now_us = NOW_US
        self.entries: list[Recorded] = []
        self.tell(*entries)

    @classmethod
    def begun(cls, *entries: Entry) -> "Story":
        """A first run with one message, in its first turn, and what followed."""
        return cls(started(human()), TurnStarted(worker_id="w1", attempt=1), *entries)

    def tell(self, *entries: Entry) -> "Story":
        """Add entries, a millisecond apart."""
        for entry in entries:
            self.now_us += 1_000
            place = (len(self.entries) + 1, self.branch, self.run, self.fence, self.now_us)
            self.entries.append(Recorded(*place, kind_of(entry), entry))
        return self

    def next_turn(self, *entries: Entry) -> "Story":
        """Another worker goes on with the run, under the next fence."""
        self.fence += 1
        return self.tell(TurnStarted(worker_id=f"w{self.fence}", attempt=self.fence), *entries)

    @property
    def state(self) -> ThreadState:
        """The fold of all entries."""
        return fold(self.entries)

    def call(self, key: str = "tool-1-0") -> Call:
        """A call of the last reply."""
        return self.state.calls[StepKey(key)]


def returned(key: str, value: Any = "done", *, call_id: str = "call-1", **changes: Any) -> ToolReturned:
    """The entry of a tool's result."""
    shown: dict[str, Any] = {
        "step_key": StepKey(key),
        "call_id": call_id,
        "tool": "look",
        "outcome": "ok",
        "message_id": f"msg-{key}",
        "value": value,
    }
    return ToolReturned(**shown | changes)


def a_run(**changes: Any) -> Run:
    """A running run, as the claim gives it."""
    now = datetime(2027, 1, 15, tzinfo=UTC)
    values: dict[str, Any] = {
        "number": 1,
        "run_id": RUN,
        "tenant_id": TENANT,
        "thread": 1,
        "thread_id": ThreadId("thread-1"),
        "execution_id": EXECUTION,
        "assistant": "chat",
        "route": "chat",
        "status": RunStatus.RUNNING,
        "multitask": Multitask.ENQUEUE,
        "request": RunRequest(messages=(human(),)),
        "metadata": {},
        "resumable": False,
        "created_at": now,
        "updated_at": now,
        "due_at_us": 0,
        "parked": None,
        "attempts": 1,
        "orphaned": 0,
        "cancel": None,
        "reason": None,
        "failure": None,
    }
    return Run(**values | changes)


def a_submission(*texts: str, thread_id: str | None = None, **changes: Any) -> RunSubmission:
    """A request for a run that says `texts`; without any it goes on where the thread stands."""
    said = tuple(human(text, message_id=f"human-{text}") for text in texts)
    values: dict[str, Any] = {
        "tenant_id": TENANT,
        "thread_id": thread_id,
        "assistant": "chat",
        "assistant_id": "assistant-of-chat",
        "request": RunRequest(messages=said),
        "metadata": {},
    }
    return RunSubmission(**values | changes)


@dataclass(frozen=True)
class Reply:
    """One reply of a script: streamed in `pieces`, then the calls as (tool, arguments)."""

    text: str = ""
    calls: Sequence[tuple[str, dict[str, Any]]] = ()
    pieces: Sequence[str] = ()
    usage: Usage = USAGE


@dataclass
class ScriptedModel(ChatModel):
    """A model in the test's own process: it says the replies of its script in order, one for each message of its own.

    Like a real server it knows only the transcript, so it gives the same reply to the same question after any
    restart; and it refuses a transcript that no server would take. `faults` are raised first, one a call.
    """

    replies: Sequence[Reply]
    faults: list[Exception] = field(default_factory=list)
    requests: list[ModelRequest] = field(default_factory=list)
    before_end: Callable[[], Any] | None = None  #: awaited when a reply has streamed and is not yet whole

    async def reply(self, request: ModelRequest, on_delta: Callable[[str], None]) -> ModelReply:
        """The next reply of the script."""
        self.requests.append(request)
        to_openai(request.instructions, request.messages, request.recalled)
        if self.faults:
            raise self.faults.pop(0)
        ordinal = sum(message.type == "ai" for message in request.messages)
        reply = self.replies[ordinal] if ordinal < len(self.replies) else Reply("That is all.")
        pieces = list(reply.pieces) or [each for each in (reply.text,) if each]
        for piece in pieces:
            on_delta(piece)
        if self.before_end is not None:
            await self.before_end()
        return ModelReply(
            text="".join(pieces),
            tool_calls=tuple(
                ToolCall(id=f"call-{ordinal}-{index}", name=name, arguments=arguments)
                for index, (name, arguments) in enumerate(reply.calls)
            ),
            usage=reply.usage,
            finish_reason="tool_calls" if reply.calls else "stop",
            model="scripted",
            cuts=tuple(len(piece) for piece in pieces),
        )

    async def close(self) -> None:
        """Nothing is open."""
