"""Requests for runs: the fields that a caller may send, and their meaning. A field that is not supported is refused."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from threadmark.app.http.body_errors import BodyRefused
from threadmark.app.http.path_ids import uuid_of
from threadmark.app.wire.conversations.checkpoint_schema import CheckpointRef, checkpoint_id_in
from threadmark.app.wire.conversations.event_schema import StreamMode
from threadmark.app.wire.conversations.interrupt_schema import read_approval
from threadmark.app.wire.conversations.message_schema import read_messages
from threadmark.app.wire.typed_json import read_as
from threadmark.state import Message, Multitask, names_questions

__all__ = ["AFTER_S_MAX", "NODES", "RunBody", "RunSpec", "StatelessRunBody", "read_modes", "read_run_spec"]

#: The nodes of a chat agent's graph.
NODES = ("model", "tools")
#: How far ahead a run can be ordered (30 days).
AFTER_S_MAX = 30 * 24 * 3600
TAG_COUNT_MAX = 20
TAG_CHARS_MAX = 255
METADATA_KEY_COUNT_MAX = 100

_Tags = Annotated[list[Annotated[str, Meta(max_length=TAG_CHARS_MAX)]], Meta(max_length=TAG_COUNT_MAX)]
_Metadata = Annotated[dict[str, Any], Meta(max_length=METADATA_KEY_COUNT_MAX)]
_Nodes = Literal["*"] | list[Literal["model", "tools"]]
_Steps = Annotated[int, Meta(ge=1, le=1_000_000)]

#: Fields of the dialect that are taken with a value that asks for nothing, and why nothing more is taken.
_EMPTY_ONLY = {
    "context": "an agent has no context of a caller's choice",
    "webhook": "webhooks are not served; join the run, or stream it",
    "feedback_keys": "there is no feedback service",
    "langsmith_tracer": "there is no tracing service",
    "checkpoint_during": "every step is recorded as it ends; leave it out",
}


class RunCommand(Struct, forbid_unknown_fields=True):
    """An answer to what a thread asks: `resume` is an answer, or an object from interrupt ids to answers."""

    resume: Any = None
    goto: Any = None
    update: Any = None
    graph: None = None


class RunConfig(Struct, forbid_unknown_fields=True):
    """`recursion_limit` is the most steps of the run: model calls and tool calls together."""

    tags: _Tags | None = None
    recursion_limit: _Steps | None = None
    configurable: dict[str, Any] | None = None
    metadata: _Metadata | None = None


class StatelessRunBody(Struct, forbid_unknown_fields=True, kw_only=True):
    """A run on a thread of its own.

    `input` is `{"messages": …}`, or null to go on without. `durability` is `sync`: each step is on disk before the
    next begins. `on_completion: keep` keeps the thread; otherwise it goes some time after the run has ended.
    """

    assistant_id: str
    input: dict[str, Any] | None = None
    command: RunCommand | None = None
    config: RunConfig | None = None
    metadata: _Metadata | None = None
    stream_mode: StreamMode | list[StreamMode] | None = None
    stream_subgraphs: bool | None = None
    stream_resumable: bool | None = None
    interrupt_before: _Nodes | None = None
    interrupt_after: _Nodes | None = None
    on_disconnect: Literal["cancel", "continue"] | None = None
    on_completion: Literal["delete", "keep"] | None = None
    if_not_exists: Literal["create", "reject"] | None = None
    multitask_strategy: Literal["reject", "enqueue", "interrupt", "rollback"] | None = None
    after_seconds: Annotated[int, Meta(ge=0, le=AFTER_S_MAX)] | None = None
    durability: str | None = None
    strict_resume: bool | None = None
    context: Any = None
    webhook: Any = None
    feedback_keys: Any = None
    langsmith_tracer: Any = None
    checkpoint_during: Any = None


class RunBody(StatelessRunBody, forbid_unknown_fields=True, kw_only=True):
    """A run on a thread. With a checkpoint it leaves from there, on a branch of its own.

    `input` is `{"messages": …}`, or null to go on where the thread stands. `command.resume` answers its open questions.
    `durability` is `sync`: each step is on disk before the next begins.
    """

    checkpoint_id: str | None = None
    checkpoint: CheckpointRef | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """What a request for a run means."""

    assistant: str
    messages: tuple[Message, ...]
    resumes: bool
    resume: Any  #: a checked answer; None unless `resumes`
    checkpoint_id: str | None
    modes: tuple[StreamMode, ...]
    resumable: bool
    metadata: dict[str, Any]
    tags: tuple[str, ...]
    step_count_max: int | None
    interrupt_before: tuple[str, ...]
    interrupt_after: tuple[str, ...]
    multitask: Multitask
    create_missing: bool
    cancel_on_disconnect: bool
    keeps_thread: bool
    after_s: int
    kwargs: dict[str, Any]  #: the request as it was written, for display


def read_run_spec(body: StatelessRunBody, thread_id: str | None, new_id: Callable[[], str]) -> RunSpec:
    """What the body asks for, on that thread. Raises BodyRefused, BadId; `new_id` names messages that have none."""
    _refuse_unsupported(body, thread_id)
    config = body.config or RunConfig()
    messages = _messages(body.input, new_id)
    resume = None if body.command is None else _resume(body.command)
    if resume is not None and messages:
        raise BodyRefused("$.input", "does not go with command.resume; send the answer, then the messages")
    return RunSpec(
        assistant=body.assistant_id,
        messages=messages,
        resumes=resume is not None,
        resume=resume,
        checkpoint_id=_checkpoint(body, config, thread_id),
        modes=read_modes(body.stream_mode),
        resumable=bool(body.stream_resumable),
        metadata={**(config.metadata or {}), **(body.metadata or {})},
        tags=tuple(config.tags or ()),
        step_count_max=config.recursion_limit,
        interrupt_before=_nodes(body.interrupt_before),
        interrupt_after=_nodes(body.interrupt_after),
        multitask=Multitask(body.multitask_strategy or Multitask.ENQUEUE),
        create_missing=body.if_not_exists == "create",
        cancel_on_disconnect=body.on_disconnect == "cancel",
        keeps_thread=thread_id is not None or body.on_completion == "keep",
        after_s=body.after_seconds or 0,
        kwargs=_shown(body),
    )


def read_modes(given: StreamMode | list[StreamMode] | None) -> tuple[StreamMode, ...]:
    """The modes of a stream; `values` where none is named."""
    listed = [given] if isinstance(given, str) else given
    return tuple(dict.fromkeys(listed or ["values"]))


def _refuse_unsupported(body: StatelessRunBody, thread_id: str | None) -> None:
    for name, why in _EMPTY_ONLY.items():
        if getattr(body, name) not in (None, {}, []):
            raise BodyRefused(f"$.{name}", f"is not supported: {why}")
    if body.durability not in (None, "sync"):
        raise BodyRefused("$.durability", "is not supported: every step is on disk before the next begins (sync)")
    if body.strict_resume is False:
        raise BodyRefused("$.strict_resume", "is not supported: an answer without an open question is refused (true)")
    if thread_id is not None and body.on_completion == "delete":
        raise BodyRefused("$.on_completion", "is not supported: an existing thread is kept")
    if thread_id is None and body.if_not_exists == "reject":
        raise BodyRefused("$.if_not_exists", "is not supported: a stateless run always creates its own thread")


def _messages(given: dict[str, Any] | None, new_id: Callable[[], str]) -> tuple[Message, ...]:
    if not given:
        return ()
    for name in given:
        if name != "messages":
            raise BodyRefused(f"$.input.{name}", "is not supported: an agent's input is its messages")
    return read_messages(given["messages"], "$.input.messages", new_id)


def _resume(command: RunCommand) -> Any:
    """The checked answer, or answers by interrupt id; None where there is none."""
    if command.update is not None:
        raise BodyRefused("$.command.update", "is not supported: update the thread's state instead")
    if command.goto not in (None, [], ""):
        raise BodyRefused("$.command.goto", "is not supported: the next node follows from the thread's messages")
    given = command.resume
    if given is None:
        return None
    if not names_questions(given):
        return read_approval(given, "$.command.resume")
    return {
        uuid_of("interrupt", wait_id): read_approval(answer, f"$.command.resume.{wait_id}")
        for wait_id, answer in given.items()
    }


def _checkpoint(body: StatelessRunBody, config: RunConfig, thread_id: str | None) -> str | None:
    """The one checkpoint that is named, in whichever of three places."""
    ref = read_as(CheckpointRef, config.configurable or {}, "$.config.configurable")
    named: dict[str, str | None] = {}
    if isinstance(body, RunBody) and thread_id is not None:
        named["$.checkpoint_id"] = None if body.checkpoint_id is None else uuid_of("checkpoint", body.checkpoint_id)
        named["$.checkpoint"] = checkpoint_id_in(body.checkpoint, thread_id, "$.checkpoint")
        named["$.config.configurable"] = checkpoint_id_in(ref, thread_id, "$.config.configurable")
    elif msgspec.structs.asdict(ref) != msgspec.structs.asdict(CheckpointRef()):
        raise BodyRefused("$.config.configurable", "names a place, and the run has a thread of its own")
    found = {path: each for path, each in named.items() if each is not None}
    if len(set(found.values())) > 1:
        raise BodyRefused(next(reversed(found)), "and another field name different checkpoints")
    return next(iter(found.values()), None)


def _nodes(given: Literal["*"] | list[Literal["model", "tools"]] | None) -> tuple[str, ...]:
    if given == "*":
        return ("*",)
    return tuple(given or ())


def _shown(body: StatelessRunBody) -> dict[str, Any]:
    written: dict[str, Any] = msgspec.to_builtins(body)
    for name in ("assistant_id", "metadata", "multitask_strategy"):
        del written[name]
    return {**written, "stream_mode": list(read_modes(body.stream_mode))}
