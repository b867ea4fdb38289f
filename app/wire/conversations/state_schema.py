"""States of the dialect: a thread as it stands at a position."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec import Struct

from threadmark.app.wire.conversations.checkpoint_schema import ShownCheckpoint
from threadmark.app.wire.conversations.interrupt_schema import interrupt_of_wait
from threadmark.app.wire.conversations.message_schema import message_to_wire
from threadmark.state import Failure, Message, Origin, Position, Wait, from_us
from threadmark.workers.agents.agent import assistant_id_of

__all__ = [
    "EMPTY",
    "Moment",
    "ShownState",
    "ShownTask",
    "Spelled",
    "StateField",
    "chosen",
    "metadata_of",
    "state_to_wire",
    "task_id_of",
    "values_of",
]

StateField = Literal[
    "values",
    "values.messages",
    "next",
    "tasks",
    "metadata",
    "created_at",
    "checkpoint",
    "parent_checkpoint",
    "interrupts",
    "checkpoint_id",
    "parent_checkpoint_id",
]

_TASKS = uuid.UUID("8c0b6a0e-54a8-5d0b-9d83-3c5a3f6f2f57")


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What is known of a position: what was said by then, who is asked, and why its run failed there."""

    position: Position
    messages: Sequence[Message]
    waits: Sequence[Wait] = ()
    failure: Failure | None = None
    origin: Origin | None = None  #: the run that made it; None for an update from outside


class ShownTask(Struct):
    """The node to come, and what it asks."""

    id: str
    name: str
    path: list[str]
    error: str | None
    interrupts: list[dict[str, Any]]
    checkpoint: None = None
    state: None = None
    result: None = None


class ShownState(Struct):
    """A thread at a position. All is empty where a thread has none yet."""

    values: dict[str, Any] = {}
    next: list[str] = []
    tasks: list[ShownTask] = []
    metadata: dict[str, Any] | None = None
    created_at: datetime | None = None
    checkpoint: ShownCheckpoint | None = None
    parent_checkpoint: ShownCheckpoint | None = None
    interrupts: list[dict[str, Any]] = []
    checkpoint_id: str | None = None
    parent_checkpoint_id: str | None = None


EMPTY = ShownState()


class Spelled:
    """Shows each message once, as JSON, however many states it is part of."""

    def __init__(self) -> None:
        self._shown: dict[int, tuple[Message, msgspec.Raw]] = {}

    def __call__(self, message: Message) -> msgspec.Raw:
        """The message as JSON that is ready."""
        found = self._shown.get(id(message))
        if found is None:
            # The message is kept beside, so that no other can take its id.
            found = (message, msgspec.Raw(msgspec.json.encode(message_to_wire(message))))
            self._shown[id(message)] = found
        return found[1]


def state_to_wire(thread_id: str, moment: Moment, shown: Callable[[Message], Any] = message_to_wire) -> ShownState:
    """The state at a moment, with its messages as `shown` shows them."""
    position = moment.position
    checkpoint = ShownCheckpoint.of(thread_id, position)
    parent = None if position.parent is None else ShownCheckpoint.of(thread_id, position.parent)
    interrupts = [interrupt_of_wait(wait) for wait in moment.waits]
    tasks = [] if position.next is None else [_task(checkpoint.checkpoint_id, position.next, moment, interrupts)]
    return ShownState(
        values=values_of(moment.messages, shown),
        next=[] if position.next is None else [position.next],
        tasks=tasks,
        metadata=metadata_of(thread_id, moment.position, moment.origin),
        created_at=from_us(position.at_us),
        checkpoint=checkpoint,
        parent_checkpoint=parent,
        interrupts=interrupts,
        checkpoint_id=checkpoint.checkpoint_id,
        parent_checkpoint_id=None if parent is None else parent.checkpoint_id,
    )


def values_of(messages: Sequence[Message], shown: Callable[[Message], Any] = message_to_wire) -> dict[str, Any]:
    """The values of a state: its one channel."""
    return {"messages": [shown(each) for each in messages]}


def metadata_of(thread_id: str, position: Position, origin: Origin | None) -> dict[str, Any]:
    """The metadata of a position, which a history can be filtered by."""
    made_by = {}
    if origin is not None:
        assistant_id = assistant_id_of(origin.assistant)
        made_by = {"run_id": origin.run_id, "graph_id": origin.assistant, "assistant_id": assistant_id}
    return {"source": position.source, "step": position.step, "parents": {}, "thread_id": thread_id, **made_by}


def task_id_of(checkpoint_id: str, node: str) -> str:
    """The id of the task that is next at a checkpoint."""
    return str(uuid.uuid5(_TASKS, f"{checkpoint_id}/{node}"))


def chosen(state: ShownState, fields: Sequence[StateField] | None) -> dict[str, Any]:
    """The members of the state, the chosen ones alone."""
    members = msgspec.structs.asdict(state)
    if fields is None:
        return members
    names = {field.partition(".")[0] for field in fields}
    return {name: value for name, value in members.items() if name in names}


def _task(checkpoint_id: str, node: str, moment: Moment, interrupts: list[dict[str, Any]]) -> ShownTask:
    failure = moment.failure
    return ShownTask(
        id=task_id_of(checkpoint_id, node),
        name=node,
        path=["__pregel_pull", node],
        error=None if failure is None else f"{failure.error}: {failure.message}",
        interrupts=interrupts,
    )
