"""Runs on a thread: start, look at, delete."""

from typing import Annotated, Any, Literal

from litestar import Response, delete, get, post
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, JSONBody, QueryParameter
from sqlalchemy import Connection

from threadmark.app.access import Scope, needs
from threadmark.app.http.path_ids import uuid_of
from threadmark.app.listing.pages import PageSize
from threadmark.app.listing.parameters import names_of, one_of
from threadmark.app.requests import dependencies
from threadmark.app.requests.answers import json_answer
from threadmark.app.runs.run_starter import Starter
from threadmark.app.wire.conversations.run_request import RunBody
from threadmark.app.wire.conversations.run_schema import RUN_FIELDS, ShownRun, chosen, run_to_wire
from threadmark.app.wire.conversations.thread_schema import OFFSET_MAX
from threadmark.app.wire.selected import selected
from threadmark.state import delete_run, get_run, get_thread, list_runs, served_routes

__all__ = ["EVENTS", "OUTCOME", "ROUTES", "SHOWN"]

SHOWN = {200: ResponseSpec(ShownRun, description="The run.", generate_examples=False)}
EVENTS = {200: ResponseSpec(str, description="The run's events.", media_type="text/event-stream")}
OUTCOME = {
    200: ResponseSpec(
        dict[str, Any],
        description="The last values of the run, with `__interrupt__` where it asks something; or its `__error__`.",
        generate_examples=False,
    )
}
_LISTED = {200: ResponseSpec(selected(ShownRun), description="Runs.", generate_examples=False)}
RUN_COUNT = 10

Offset = Annotated[int, QueryParameter(name="offset", ge=0, le=OFFSET_MAX, description="Rows to leave out.")]
Select = Annotated[
    list[Annotated[str, one_of(RUN_FIELDS)]] | None, QueryParameter(name="select", description="Only these fields.")
]
Status = Annotated[
    Literal["pending", "running", "error", "success", "timeout", "interrupted"] | None,
    QueryParameter(name="status", description="Only such runs."),
]


@post("/threads/{thread_id:str}/runs", opt=needs(Scope.RUN), status_code=200, responses=SHOWN)
async def create_run(
    thread_id: FromPath[str],
    data: JSONBody[RunBody],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    keys: dependencies.Keys,
    request_key: dependencies.RequestKey,
    trace_parent: dependencies.TraceParent,
) -> Response[bytes]:
    """Start a run in the background. `command.resume` needs the scope `approve` too."""
    return await _starter(thread_id, caller, resources, keys, request_key, trace_parent).create(data)


@post("/threads/{thread_id:str}/runs/stream", opt=needs(Scope.RUN), status_code=200, responses=EVENTS)
async def stream_run(
    thread_id: FromPath[str],
    data: JSONBody[RunBody],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    keys: dependencies.Keys,
    request_key: dependencies.RequestKey,
    trace_parent: dependencies.TraceParent,
) -> Response[None]:
    """Start a run and stream its events. Events have ids if it is `stream_resumable`."""
    return await _starter(thread_id, caller, resources, keys, request_key, trace_parent).stream(data)


@post("/threads/{thread_id:str}/runs/wait", opt=needs(Scope.RUN), status_code=200, responses=OUTCOME)
async def wait_run(
    thread_id: FromPath[str],
    data: JSONBody[RunBody],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    keys: dependencies.Keys,
    request_key: dependencies.RequestKey,
    trace_parent: dependencies.TraceParent,
) -> Response[None] | Response[bytes]:
    """Start a run and answer when it is over. Blanks before the answer say that it goes on."""
    return await _starter(thread_id, caller, resources, keys, request_key, trace_parent).wait(data)


@get("/threads/{thread_id:str}/runs", opt=needs(Scope.READ), responses=_LISTED)
async def list_thread_runs(
    thread_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    limit: PageSize = RUN_COUNT,
    offset: Offset = 0,
    status: Status = None,
    select: Select = None,
) -> Response[bytes]:
    """The runs of the thread, newest first."""
    wanted, fields = uuid_of("thread", thread_id), names_of("select", select, RUN_FIELDS)

    def unit(connection: Connection) -> list[ShownRun]:
        thread = get_thread(connection, caller.tenant_id, wanted)
        served = served_routes(connection)
        runs = list_runs(connection, thread.number, status=status, limit=limit, offset=offset)
        return [run_to_wire(run, served) for run in runs]

    return json_answer([chosen(run, fields) for run in await resources.database.read(unit)])


@get("/threads/{thread_id:str}/runs/{run_id:str}", opt=needs(Scope.READ))
async def read_run(
    thread_id: FromPath[str], run_id: FromPath[str], caller: dependencies.Caller, resources: dependencies.Resources
) -> ShownRun:
    """The run. One that was rolled back is not there any more."""
    of_thread, wanted = uuid_of("thread", thread_id), uuid_of("run", run_id)

    def unit(connection: Connection) -> ShownRun:
        run = get_run(connection, caller.tenant_id, wanted, thread_id=of_thread)
        return run_to_wire(run, served_routes(connection))

    return await resources.database.read(unit)


@delete("/threads/{thread_id:str}/runs/{run_id:str}", opt=needs(Scope.RUN))
async def remove_run(
    thread_id: FromPath[str], run_id: FromPath[str], caller: dependencies.Caller, resources: dependencies.Resources
) -> None:
    """Take a run that has ended out of the list; what was said in it stays in the thread."""
    of_thread, wanted, now_us = uuid_of("thread", thread_id), uuid_of("run", run_id), resources.wired.now_us()
    await resources.database.write(
        lambda connection: delete_run(connection, caller.tenant_id, of_thread, wanted, now_us)
    )


def _starter(
    thread_id: str,
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    keys: dependencies.Keys,
    request_key: dependencies.RequestKey,
    trace_parent: dependencies.TraceParent,
) -> Starter:
    wanted = uuid_of("thread", thread_id)
    return Starter(
        resources=resources,
        keys=keys,
        caller=caller,
        request_key=request_key,
        thread_id=wanted,
        trace_parent=trace_parent,
    )


ROUTES = [create_run, stream_run, wait_run, list_thread_runs, read_run, remove_run]
