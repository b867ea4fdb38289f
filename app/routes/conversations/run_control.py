"""Runs that are there already: join them, read along, cancel them."""

from typing import Annotated, Any, Literal

from litestar import Response, get, post
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, HeaderParameter, JSONBody, QueryParameter
from msgspec import Meta, Struct
from sqlalchemy import Connection

from threadmark.app.access import Scope, needs
from threadmark.app.access.gate import Forbidden
from threadmark.app.http.body_errors import BodyRefused
from threadmark.app.http.path_ids import BadEventId, uuid_of
from threadmark.app.listing.parameters import names_of, one_of
from threadmark.app.requests import dependencies
from threadmark.app.requests.request import ApiRequest
from threadmark.app.resources import Resources
from threadmark.app.routes.conversations.runs import EVENTS, OUTCOME
from threadmark.app.runs.cancellation import CANCEL_COUNT_MAX, Cancellation, cancel_everywhere
from threadmark.app.runs.run_reader import Reader
from threadmark.app.wire.conversations.event_ids import read_place
from threadmark.app.wire.conversations.event_schema import MODES, StreamMode
from threadmark.state import CancelAction, Run, get_run, get_thread

__all__ = ["ROUTES", "BulkCancel"]

Action = Annotated[
    Literal["interrupt", "rollback"],
    QueryParameter(name="action", description="`interrupt` keeps what was done; `rollback` takes the run back."),
]
Waits = Annotated[bool, QueryParameter(name="wait", description="Answer when the run has ended.")]
Modes = Annotated[
    list[Annotated[str, one_of(MODES)]] | None,
    QueryParameter(name="stream_mode", description="Without it those of the run's request."),
]
CancelsOnLeaving = Annotated[
    bool,
    QueryParameter(
        name="cancel_on_disconnect", description="Cancel the run when this connection breaks. Needs the scope `run`."
    ),
]
LastEventId = Annotated[
    str | None,
    HeaderParameter(name="Last-Event-ID", description="Stream what follows this event; `0` for all. Else what comes."),
]


class BulkCancel(Struct, forbid_unknown_fields=True):
    """Which runs: those of a thread (all, or `run_ids`), or without a thread those of every thread with a `status`."""

    thread_id: str | None = None
    run_ids: Annotated[list[str], Meta(min_length=1, max_length=CANCEL_COUNT_MAX)] | None = None
    status: Literal["pending", "running", "all"] | None = None


@get("/threads/{thread_id:str}/runs/{run_id:str}/join", opt=needs(Scope.READ), responses=OUTCOME)
async def join_run(
    thread_id: FromPath[str],
    run_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    keys: dependencies.Keys,
) -> Response[None]:
    """What the run came to, when it is over. Blanks before the answer say that it goes on."""
    with resources.take_stream(caller.tenant_id) as seat:
        run, _ = await _run(resources, caller, thread_id, run_id)
        return Reader(resources=resources, keys=keys, caller=caller, run=run, seat=seat.kept()).result()


@get("/threads/{thread_id:str}/runs/{run_id:str}/stream", opt=needs(Scope.READ), responses=EVENTS)
async def join_run_stream(
    thread_id: FromPath[str],
    run_id: FromPath[str],
    request: ApiRequest,
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    keys: dependencies.Keys,
    stream_mode: Modes = None,
    cancel_on_disconnect: CancelsOnLeaving = False,
    last_event_id: LastEventId = None,
) -> Response[None]:
    """The run's events: those after `Last-Event-ID`, now or after any restart; without it what comes from now on."""
    del last_event_id  # Declared for the API's description; only all headers together show that there is but one.
    modes = tuple(mode for mode in MODES if mode in names_of("stream_mode", stream_mode, MODES))
    after = read_place(request.headers.getall("last-event-id", []))
    if cancel_on_disconnect and not caller.may(Scope.RUN):
        raise Forbidden(f"this key may not cancel runs: it lacks the scope {Scope.RUN}")
    with resources.take_stream(caller.tenant_id) as seat:
        run, head_seq = await _run(resources, caller, thread_id, run_id)
        if after is not None and after.seq > head_seq:
            raise BadEventId
        reader = Reader(
            resources=resources,
            keys=keys,
            caller=caller,
            run=run,
            cancels_on_leaving=cancel_on_disconnect,
            seat=seat.kept(),
        )
    return reader.stream(modes or _modes_of(run), after, with_ids=run.resumable or after is not None)


@post(
    "/threads/{thread_id:str}/runs/{run_id:str}/cancel",
    opt=needs(Scope.RUN),
    status_code=202,
    responses={
        200: ResponseSpec(dict[str, Any], description="The run has ended (`wait`).", generate_examples=False),
        202: ResponseSpec(None, description="The run is asked to stop."),
    },
)
async def cancel_run(
    thread_id: FromPath[str],
    run_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    keys: dependencies.Keys,
    wait: Waits = False,
    action: Action = "interrupt",
) -> Response[None] | Response[bytes]:
    """Cancel the run. One that has ended is 404."""
    of_thread, wanted = uuid_of("thread", thread_id), uuid_of("run", run_id)
    cancellation = Cancellation(action=CancelAction(action), run_ids=(wanted,))

    def unit(connection: Connection) -> Run:
        # Looked at first: one that is rolled back before it began is not there any more.
        found = get_run(connection, caller.tenant_id, wanted, thread_id=of_thread)
        cancellation.ask(connection, found.thread, resources.wired.now_us())
        return found

    if not wait:
        await resources.database.write(unit)
        resources.wired.notifier.notice((wanted,))
        return Response(b"", status_code=202)
    with resources.take_stream(caller.tenant_id) as seat:
        run = await resources.database.write(unit)
        resources.wired.notifier.notice((wanted,))
        return Reader(resources=resources, keys=keys, caller=caller, run=run, seat=seat.kept()).result(_nothing)


@post("/runs/cancel", opt=needs(Scope.RUN), status_code=204)
async def cancel_runs_in_bulk(
    data: JSONBody[BulkCancel],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    action: Action = "interrupt",
) -> None:
    """Cancel runs; 404 if there is none to cancel. Runs with a thread of their own are cancelled one by one."""
    if data.thread_id is None and data.run_ids is not None:
        raise BodyRefused("$.thread_id", "is required where run_ids name the runs of a thread")
    if data.thread_id is None and data.status is None:
        raise BodyRefused("$", "names neither a thread nor a status")
    cancellation = Cancellation(
        action=CancelAction(action),
        run_ids=None if data.run_ids is None else tuple(uuid_of("run", each) for each in data.run_ids),
        status=data.status or "all",
    )
    of_thread = None if data.thread_id is None else uuid_of("thread", data.thread_id)
    cancelled = await cancel_everywhere(resources, caller, cancellation, of_thread)
    resources.wired.notifier.notice(cancelled)


async def _nothing() -> bytes:
    return b"{}"


async def _run(resources: Resources, caller: dependencies.Caller, thread_id: str, run_id: str) -> tuple[Run, int]:
    """The run, and the head of its thread."""
    of_thread, wanted = uuid_of("thread", thread_id), uuid_of("run", run_id)

    def unit(connection: Connection) -> tuple[Run, int]:
        thread = get_thread(connection, caller.tenant_id, of_thread)
        return get_run(connection, caller.tenant_id, wanted, thread_id=of_thread), thread.head_seq

    return await resources.database.read(unit)


def _modes_of(run: Run) -> tuple[StreamMode, ...]:
    """The modes that the run was asked for with."""
    asked = run.request.kwargs.get("stream_mode", [])
    return tuple(mode for mode in MODES if mode in asked) or ("values",)


ROUTES = [join_run, join_run_stream, cancel_run, cancel_runs_in_bulk]
