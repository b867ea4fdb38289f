"""Runs without a thread: each makes one of its own, which goes some time after the run has ended."""

from functools import partial

import msgspec
from litestar import Response, post
from litestar.openapi import ResponseSpec
from litestar.params import JSONBody
from sqlalchemy import Connection

from threadmark.app.access import Scope, needs
from threadmark.app.http.body_errors import BodyRefused
from threadmark.app.requests import dependencies
from threadmark.app.requests.answers import once
from threadmark.app.routes.conversations.runs import EVENTS, OUTCOME, SHOWN
from threadmark.app.runs.run_admission import announce, submission_of
from threadmark.app.runs.run_starter import Starter
from threadmark.app.wire.conversations.run_request import StatelessRunBody, read_run_spec
from threadmark.app.wire.conversations.run_schema import ShownRun, run_to_wire
from threadmark.state import Acceptance, Reply, accept, new_id, served_routes
from threadmark.state.threads.receipts import look_up, record

__all__ = ["BATCH_COUNT_MAX", "ROUTES"]

#: Runs of one batch.
BATCH_COUNT_MAX = 100

_SHOWN_ALL = {200: ResponseSpec(list[ShownRun], description="The runs, in order.", generate_examples=False)}


@post("/runs", opt=needs(Scope.RUN), status_code=200, responses=SHOWN)
async def create_stateless_run(
    data: JSONBody[StatelessRunBody],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    keys: dependencies.Keys,
    request_key: dependencies.RequestKey,
    trace_parent: dependencies.TraceParent,
) -> Response[bytes]:
    """Start a run in the background, on a thread of its own."""
    return await _starter(caller, resources, keys, request_key, trace_parent).create(data)


@post("/runs/stream", opt=needs(Scope.RUN), status_code=200, responses=EVENTS)
async def stream_stateless_run(
    data: JSONBody[StatelessRunBody],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    keys: dependencies.Keys,
    request_key: dependencies.RequestKey,
    trace_parent: dependencies.TraceParent,
) -> Response[None]:
    """Start a run on a thread of its own, and stream its events."""
    return await _starter(caller, resources, keys, request_key, trace_parent).stream(data)


@post("/runs/wait", opt=needs(Scope.RUN), status_code=200, responses=OUTCOME)
async def wait_stateless_run(
    data: JSONBody[StatelessRunBody],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    keys: dependencies.Keys,
    request_key: dependencies.RequestKey,
    trace_parent: dependencies.TraceParent,
) -> Response[None] | Response[bytes]:
    """Start a run on a thread of its own, and answer when it is over."""
    return await _starter(caller, resources, keys, request_key, trace_parent).wait(data)


@post("/runs/batch", opt=needs(Scope.RUN), status_code=200, responses=_SHOWN_ALL)
async def create_batch(
    data: JSONBody[list[StatelessRunBody]],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    request_key: dependencies.RequestKey,
    trace_parent: dependencies.TraceParent,
) -> Response[bytes]:
    """Start several runs in the background, each on a thread of its own: all of them, or none."""
    if not 1 <= len(data) <= BATCH_COUNT_MAX:
        raise BodyRefused("$", f"is a list of 1 to {BATCH_COUNT_MAX} runs, and has {len(data)}")
    wired, now_us = resources.wired, resources.wired.now_us()
    receipt = None if request_key is None else request_key.receipt(lambda body: (200, body))
    offers = [
        submission_of(
            read_run_spec(each, None, partial(new_id, now_us)), caller, wired, None, None, now_us, trace_parent
        )
        for each in data
    ]

    def unit(connection: Connection) -> tuple[Reply | bytes, list[Acceptance]]:
        if (reply := look_up(connection, caller.tenant_id, receipt, now_us=now_us)) is not None:
            return reply, []
        made = [accept(connection, submission, now_us) for submission in offers]
        served = served_routes(connection)
        body = msgspec.json.encode([run_to_wire(each.run, served) for each in made if each.run is not None])
        record(connection, caller.tenant_id, receipt, body)
        return body, made

    answer, made = await resources.database.write(unit)
    announce(wired, made)
    return once(answer)


def _starter(
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    keys: dependencies.Keys,
    request_key: dependencies.RequestKey,
    trace_parent: dependencies.TraceParent,
) -> Starter:
    return Starter(
        resources=resources,
        keys=keys,
        caller=caller,
        request_key=request_key,
        thread_id=None,
        trace_parent=trace_parent,
    )


ROUTES = [create_stateless_run, stream_stateless_run, wait_stateless_run, create_batch]
