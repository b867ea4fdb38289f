"""The state of a thread: as it stands, as it stood, and updates of it."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal
from uuid import uuid4

import msgspec
from litestar import Response, get, post
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import Meta, Struct
from sqlalchemy import Connection

from threadmark.app.access import Scope, needs
from threadmark.app.http.body_errors import BodyRefused
from threadmark.app.http.path_ids import uuid_of
from threadmark.app.listing.pages import PAGE_SIZE_MAX
from threadmark.app.pools import sliced
from threadmark.app.requests import dependencies
from threadmark.app.requests.answers import once
from threadmark.app.resources import Resources
from threadmark.app.runs.state_update import UpdateSpec, update_thread
from threadmark.app.runs.thread_state import Question, at_checkpoint, history
from threadmark.app.sse.live_response import LiveResponse, whole_or_cut
from threadmark.app.wire.conversations.checkpoint_schema import (
    CheckpointRef,
    ShownCheckpoint,
    before_of,
    checkpoint_id_in,
)
from threadmark.app.wire.conversations.message_schema import Revision, read_revision
from threadmark.app.wire.conversations.state_schema import (
    EMPTY,
    Moment,
    ShownState,
    Spelled,
    StateField,
    chosen,
    state_to_wire,
)
from threadmark.app.wire.typed_json import read_as
from threadmark.state import Reply, checkpoint_id_of, get_thread
from threadmark.state.threads.receipts import look_up, record

__all__ = ["ROUTES"]

HISTORY_COUNT = 10
#: Small states go out together.
SLICE_BYTES_MIN = 64 * 1024
_STATE = {200: ResponseSpec(ShownState, description="The state.", generate_examples=False)}
_STATES = {200: ResponseSpec(list[ShownState], description="States, newest first.", generate_examples=False)}
Subgraphs = Annotated[bool, QueryParameter(name="subgraphs", description="Changes nothing: there are no subgraphs.")]
Select = Annotated[list[StateField] | None, QueryParameter(name="select", description="Only these fields.")]
Before = Annotated[str | None, QueryParameter(name="before", description="A checkpoint id: older ones than this.")]
HistorySize = Annotated[int, QueryParameter(name="limit", ge=1, le=PAGE_SIZE_MAX, description="States, at most.")]


class StateAt(Struct, forbid_unknown_fields=True):
    """Which state: that of a checkpoint, or without `checkpoint_id` the present one."""

    checkpoint: CheckpointRef
    subgraphs: bool = False
    select: list[StateField] | None = None


class HistoryPage(Struct, forbid_unknown_fields=True):
    """Which states: those `before` a checkpoint (an id, a checkpoint or a config), or of one `checkpoint`.

    `metadata` compares top-level keys (`source`, `step`, `run_id`, …) by their whole values.
    """

    limit: Annotated[int, Meta(ge=1, le=PAGE_SIZE_MAX)] = HISTORY_COUNT
    before: str | dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    checkpoint: CheckpointRef | None = None
    select: list[StateField] | None = None


class NewState(Struct, forbid_unknown_fields=True):
    """An update: `values.messages` are added, take the place of those with their ids, or remove them.

    With a checkpoint the update leaves from there, on a branch of its own.
    """

    values: dict[str, Any] | None = None
    checkpoint_id: str | None = None
    checkpoint: CheckpointRef | None = None
    as_node: Literal["model", "tools"] | None = None


class Updated(Struct):
    """The checkpoint that an update made."""

    checkpoint: ShownCheckpoint
    configurable: ShownCheckpoint
    checkpoint_id: str


class _Channels(Struct, forbid_unknown_fields=True):
    messages: Any = []


@get("/threads/{thread_id:str}/state", opt=needs(Scope.READ), responses=_STATE)
async def read_state(
    thread_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    subgraphs: Subgraphs = False,
    select: Select = None,
) -> Response[bytes]:
    """The thread as it stands."""
    return await _state_at(resources, caller.tenant_id, uuid_of("thread", thread_id), None, select)


@get("/threads/{thread_id:str}/state/{checkpoint_id:str}", opt=needs(Scope.READ), responses=_STATE)
async def read_state_at(
    thread_id: FromPath[str],
    checkpoint_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    subgraphs: Subgraphs = False,
    select: Select = None,
) -> Response[bytes]:
    """The thread as it stood at a checkpoint."""
    wanted, place = uuid_of("thread", thread_id), uuid_of("checkpoint", checkpoint_id)
    return await _state_at(resources, caller.tenant_id, wanted, place, select)


@post("/threads/{thread_id:str}/state/checkpoint", opt=needs(Scope.READ), status_code=200, responses=_STATE)
async def find_state(
    thread_id: FromPath[str], data: JSONBody[StateAt], caller: dependencies.Caller, resources: dependencies.Resources
) -> Response[bytes]:
    """The thread as it stood at a checkpoint, or as it stands."""
    wanted = uuid_of("thread", thread_id)
    place = checkpoint_id_in(data.checkpoint, wanted, "$.checkpoint")
    return await _state_at(resources, caller.tenant_id, wanted, place, data.select)


@post(
    "/threads/{thread_id:str}/state",
    opt=needs(Scope.RUN),
    status_code=200,
    responses={200: ResponseSpec(Updated, description="The new checkpoint.", generate_examples=False)},
)
async def update_state(
    thread_id: FromPath[str],
    data: JSONBody[NewState],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    request_key: dependencies.RequestKey,
) -> Response[bytes]:
    """Write messages into the thread from outside, while no run moves it."""
    wanted, now_us = uuid_of("thread", thread_id), resources.wired.now_us()
    spec = UpdateSpec(
        revision=_revision_of(data.values),
        as_node=data.as_node,
        checkpoint_id=_checkpoint_of(data, wanted),
        by=f"key:{caller.key_id}",
    )
    receipt = None if request_key is None else request_key.receipt(lambda body: (200, body))

    def unit(connection: Connection) -> Reply | bytes:
        if (reply := look_up(connection, caller.tenant_id, receipt, now_us=now_us)) is not None:
            return reply
        made = update_thread(connection, resources.wired.journal.fold_cache, caller.tenant_id, wanted, spec, now_us)
        body = _updated(wanted, checkpoint_id_of(wanted, made.branch, made.seq, made.at_us))
        thread = get_thread(connection, caller.tenant_id, wanted)
        record(connection, caller.tenant_id, receipt, body, thread=thread.number)
        return body

    return once(await resources.database.write(unit))


@post("/threads/{thread_id:str}/history", opt=needs(Scope.READ), status_code=200, responses=_STATES)
async def find_history(
    thread_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    data: JSONBody[HistoryPage | None] = None,
) -> LiveResponse:
    """States of the thread over all its branches, newest first; `parent_checkpoint` makes a tree of them."""
    page, wanted = data or HistoryPage(), uuid_of("thread", thread_id)
    question = Question(
        limit=page.limit,
        before=before_of(page.before, wanted, "$.before"),
        exactly=checkpoint_id_in(page.checkpoint, wanted, "$.checkpoint"),
        metadata=page.metadata,
    )
    return await _history(resources, caller.tenant_id, wanted, question, page.select)


@get("/threads/{thread_id:str}/history", opt=needs(Scope.READ), responses=_STATES)
async def read_history(
    thread_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    limit: HistorySize = HISTORY_COUNT,
    before: Before = None,
) -> LiveResponse:
    """States of the thread over all its branches, newest first."""
    wanted = uuid_of("thread", thread_id)
    question = Question(limit=limit, before=before_of(before, wanted, "before"))
    return await _history(resources, caller.tenant_id, wanted, question, None)


async def _state_at(
    resources: Resources, tenant_id: str, thread_id: str, place: str | None, select: list[StateField] | None
) -> Response[bytes]:
    def unit(connection: Connection) -> bytes:
        moment = at_checkpoint(connection, resources.wired.journal.fold_cache, tenant_id, thread_id, place)
        state = EMPTY if moment is None else state_to_wire(thread_id, moment)
        return msgspec.json.encode(chosen(state, select))

    # A long transcript is written in the reader's thread: others are not to wait for it.
    return once(await resources.database.read(unit))


async def _history(
    resources: Resources, tenant_id: str, thread_id: str, question: Question, select: list[StateField] | None
) -> LiveResponse:
    def unit(connection: Connection) -> list[Moment]:
        return history(connection, get_thread(connection, tenant_id, thread_id), question)

    moments = await resources.database.read(unit)
    return whole_or_cut(resources, sliced(_spelled(thread_id, moments, select)))


def _spelled(thread_id: str, moments: Sequence[Moment], select: list[StateField] | None) -> Iterator[bytes]:
    """A list of states as JSON, state by state: each may have a whole transcript in it."""
    spelled, before = Spelled(), b"["
    slice_ = bytearray()
    for moment in moments:
        slice_ += before + msgspec.json.encode(chosen(state_to_wire(thread_id, moment, spelled), select))
        before = b","
        if len(slice_) >= SLICE_BYTES_MIN:
            yield bytes(slice_)
            slice_.clear()
    yield bytes(slice_) + (b"]" if moments else b"[]")


def _revision_of(values: dict[str, Any] | None) -> Revision:
    channels = read_as(_Channels, values or {}, "$.values")
    return read_revision(channels.messages, "$.values.messages", lambda: str(uuid4()))


def _checkpoint_of(data: NewState, thread_id: str) -> str | None:
    inside = checkpoint_id_in(data.checkpoint, thread_id, "$.checkpoint")
    around = None if data.checkpoint_id is None else uuid_of("checkpoint", data.checkpoint_id)
    if inside is not None and around is not None and inside != around:
        raise BodyRefused("$.checkpoint_id", "and checkpoint name different checkpoints")
    return around if inside is None else inside


def _updated(thread_id: str, checkpoint_id: str) -> bytes:
    shown = ShownCheckpoint(thread_id=thread_id, checkpoint_id=checkpoint_id)
    return msgspec.json.encode(Updated(checkpoint=shown, configurable=shown, checkpoint_id=checkpoint_id))


ROUTES = [read_state, read_state_at, find_state, update_state, find_history, read_history]
