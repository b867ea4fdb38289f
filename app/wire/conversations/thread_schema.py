"""Threads of the dialect: how they are shown, made, labelled and searched for."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from threadmark.app.http.path_ids import uuid_of
from threadmark.app.listing.pages import PAGE_SIZE_MAX
from threadmark.app.wire.conversations.state_schema import Moment, state_to_wire
from threadmark.state import Thread, ThreadFilter

__all__ = [
    "Labels",
    "NewThread",
    "ShownThread",
    "ThreadCount",
    "ThreadField",
    "ThreadSearch",
    "ThreadSort",
    "chosen",
    "thread_to_wire",
]

#: Top-level keys of a metadata filter.
FILTER_KEY_COUNT_MAX = 20
ID_COUNT_MAX = 1_000
OFFSET_MAX = 1_000_000_000

ThreadField = Literal[
    "thread_id",
    "created_at",
    "updated_at",
    "state_updated_at",
    "metadata",
    "status",
    "config",
    "context",
    "values",
    "interrupts",
    "error",
]
ThreadSort = Literal["thread_id", "status", "created_at", "updated_at", "state_updated_at"]
_Filter = Annotated[dict[str, Any], Meta(max_length=FILTER_KEY_COUNT_MAX)]
_Status = Literal["idle", "busy", "interrupted", "error"]


class NewThread(Struct, forbid_unknown_fields=True):
    """A thread to be made. `thread_id` is a UUID of the caller's choice."""

    thread_id: str | None = None
    metadata: dict[str, Any] | None = None
    if_exists: Literal["raise", "do_nothing"] | None = None


class Labels(Struct, forbid_unknown_fields=True):
    """Metadata to merge, key by key."""

    metadata: dict[str, Any] | None = None


class ThreadCount(Struct, forbid_unknown_fields=True):
    """Which threads: all that is named holds. `metadata` compares top-level keys by their whole values."""

    metadata: _Filter | None = None
    status: _Status | None = None
    ids: Annotated[list[str], Meta(max_length=ID_COUNT_MAX)] | None = None

    def filter(self) -> ThreadFilter:
        """The filter in the words of state. Raises BadId."""
        ids = None if self.ids is None else [uuid_of("thread", each) for each in self.ids]
        return ThreadFilter(metadata=self.metadata, status=self.status, ids=ids)


class ThreadSearch(ThreadCount, forbid_unknown_fields=True):
    """A page of threads: by `offset`, or next to a `cursor` (which cannot skip when threads come and go)."""

    limit: Annotated[int, Meta(ge=1, le=PAGE_SIZE_MAX)] = 10
    offset: Annotated[int, Meta(ge=0, le=OFFSET_MAX)] = 0
    cursor: str | None = None
    sort_by: ThreadSort | None = None
    sort_order: Literal["asc", "desc"] | None = None
    select: list[ThreadField] | None = None


class ShownThread(Struct):
    """A thread. `values` is null before anything was said; `interrupts` lists open questions by task."""

    thread_id: str
    created_at: datetime
    updated_at: datetime
    state_updated_at: datetime
    metadata: dict[str, Any]
    status: str
    config: dict[str, Any]
    context: dict[str, Any]
    values: dict[str, Any] | None
    interrupts: dict[str, list[dict[str, Any]]]
    error: str | None


def thread_to_wire(thread: Thread, moment: Moment | None) -> ShownThread:
    """The thread with what it stands at; `moment` is None before anything was said."""
    state = None if moment is None else state_to_wire(thread.thread_id, moment)
    failure = thread.failure
    return ShownThread(
        thread_id=thread.thread_id,
        created_at=thread.created_at,
        updated_at=thread.updated_at,
        state_updated_at=thread.state_updated_at,
        metadata=thread.metadata,
        status=thread.status,
        config={},
        context={},
        values=None if state is None else state.values,
        interrupts={} if state is None else {task.id: task.interrupts for task in state.tasks if task.interrupts},
        error=None if failure is None else f"{failure.error}: {failure.message}",
    )


def chosen(thread: ShownThread, fields: Sequence[ThreadField] | None) -> dict[str, Any]:
    """The members of the thread, the chosen ones alone."""
    members = msgspec.structs.asdict(thread)
    return members if fields is None else {name: members[name] for name in members if name in fields}
