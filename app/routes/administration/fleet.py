"""The fleet, for its operators: who works, what waits, what no worker can run, and whether the database works."""

import asyncio
import os
from datetime import datetime
from functools import partial
from typing import Literal

import msgspec
from litestar import Response, get, post
from litestar.openapi import ResponseSpec
from litestar.params import JSONBody
from sqlalchemy import Connection

from threadmark import state
from threadmark.app.access import PUBLIC, Scope, needs
from threadmark.app.http.path_ids import uuid_of
from threadmark.app.requests import dependencies
from threadmark.app.wire.conversations.run_schema import ShownRun, run_to_wire
from threadmark.memory import Recollection
from threadmark.state.tasks.tasks import count_tasks
from threadmark.workers.agents.agent import Registry
from threadmark.workers.agents.call_fit import misfit_of_wait

__all__ = ["ROUTES", "Loop", "OutdatedWaits", "Queue", "Queues", "Ready", "Redrive", "Tasks", "Worker", "Workers"]


#: Open questions whose calls are looked at, of all tenants together.
OPEN_COUNT_MAX = 1_000


class Loop(msgspec.Struct, frozen=True):
    """A long-lived task of a worker. `completed_s_ago`: since its last round ended well; null: none has yet.

    `is_stale` said at the last heartbeat that no round had ended well for several intervals.
    """

    name: str
    completed_s_ago: float | None
    error_count: int
    is_stale: bool


class Worker(msgspec.Struct, frozen=True):
    """A worker process. `lease_left_s` at 0 or below: dead, and about to be reaped by the others.

    Counts are as old as its last heartbeat: `claim_count` and, of these, `orphan_count` taken over from the dead since
    it started; `loop_lag_s`: how long its event loop kept a call waiting.
    """

    worker_id: str
    started_at: str
    lease_left_s: float
    agents: dict[str, str]
    turn_count: int
    claim_count: int
    orphan_count: int
    loop_lag_s: float
    loops: list[Loop]


class Workers(msgspec.Struct, frozen=True):
    """The workers, and the routes (agent, or agent@version) of unfinished runs that none of them can run."""

    workers: list[Worker]
    unserved: list[str]


class Queue(msgspec.Struct, frozen=True):
    """Unfinished runs of one route. `parked`: what they wait for, as runs say it, if anything."""

    route: str
    status: str
    parked: str | None
    count: int
    oldest_age_s: float


class Tasks(msgspec.Struct, frozen=True):
    """Background tasks of one kind in one status."""

    kind: str
    status: str
    count: int


class OutdatedWaits(msgspec.Struct, frozen=True):
    """Open questions of one assistant about calls of one tool that do not fit the agent any more.

    `kind`: `tool_gone`, `arguments_invalid` or `effect_changed`. Each waits until a person refuses it or gives its
    result, or an alias of the tool is declared; `GET /threads/{thread_id}/waits` says more of it.
    """

    assistant: str
    tool: str
    kind: str
    count: int
    oldest_age_s: float


class Queues(msgspec.Struct, frozen=True):
    """All queues, and the background tasks.

    `oldest_pending_age_s`: since the oldest pending run was accepted that is not parked. `lag_s`: for how long the run
    has been claimable that has waited longest for nothing but a worker. `claims_per_s`: over the last
    `claims_window_s` seconds, by the workers that are enrolled now.
    """

    queues: list[Queue]
    tasks: list[Tasks]
    outdated_waits: list[OutdatedWaits]
    oldest_pending_age_s: float
    lag_s: float
    claims_per_s: float
    claims_window_s: int


class Redrive(msgspec.Struct, forbid_unknown_fields=True):
    """The run that may go on."""

    run_id: str


class Ready(msgspec.Struct, frozen=True):
    """Whether requests will be served: the database was written to and read from, and every loop of the process runs.

    `reasons`: a sentence for what is the matter with each database (that of memory is not in the way of `ready`), and
    for each long-lived task of this process that ended, or that completed no round for long.

    `memory`: `ok`; `without_index`, where recall has the newest rows of the database alone; or `unavailable`. Runs go
    on whatever it is, and it has no part in `ready`.
    """

    ready: bool
    memory: Literal["ok", "without_index", "unavailable"]
    reasons: list[str]


@get("/admin/workers", opt=needs(Scope.OPERATOR))
async def workers(resources: dependencies.Resources) -> Workers:
    """Every enrolled worker of the deployment, and what none of them can run."""
    seen = await resources.database.read(state.list_workers)
    unserved = await resources.database.read(state.unserved_routes)
    return Workers(
        workers=[
            Worker(
                worker_id=each.worker_id,
                started_at=each.started_at.isoformat(),
                lease_left_s=round(each.lease_left_s, 3),
                agents=each.agents,
                turn_count=each.turn_count,
                claim_count=each.claim_count,
                orphan_count=each.orphan_count,
                loop_lag_s=round(each.loop_lag_s, 6),
                loops=[
                    Loop(
                        name=loop.name,
                        completed_s_ago=None if loop.age_s is None else round(loop.age_s, 3),
                        error_count=loop.error_count,
                        is_stale=loop.is_stale,
                    )
                    for loop in each.loops
                ],
            )
            for each in seen
        ],
        unserved=unserved,
    )


@get("/admin/queues", opt=needs(Scope.OPERATOR))
async def queues(resources: dependencies.Resources) -> Queues:
    """Unfinished runs by route and status, background tasks, and calls that no longer fit, over all tenants."""
    depths, seen, lag_s, counts, outdated = await resources.database.read(
        lambda connection: (
            state.queue_depths(connection),
            state.list_workers(connection),
            state.claim_lag_s(connection),
            count_tasks(connection),
            _outdated(connection, resources.wired.registry, resources.now()),
        )
    )
    waiting = [each.oldest_age_s for each in depths if each.status == "pending" and each.parked is None]
    return Queues(
        queues=[
            Queue(each.route, each.status, each.parked, each.count, round(each.oldest_age_s, 3)) for each in depths
        ],
        tasks=[Tasks(each.kind, each.status, each.count) for each in counts],
        outdated_waits=outdated,
        oldest_pending_age_s=round(max(waiting, default=0.0), 3),
        lag_s=round(lag_s, 3),
        claims_per_s=round(sum(each.recent_claim_count for each in seen) / state.RATE_WINDOW_S, 3),
        claims_window_s=state.RATE_WINDOW_S,
    )


@post("/admin/redrive", opt=needs(Scope.OPERATOR), status_code=200)
async def redrive(data: JSONBody[Redrive], resources: dependencies.Resources) -> ShownRun:
    """Let a run of any tenant go on that is `broken` or `quarantined`: at once, and with its breaks reset to zero."""
    wanted, now_us = uuid_of("run", data.run_id), resources.wired.now_us()
    run, served = await resources.database.write(
        lambda connection: (state.redrive(connection, wanted, now_us), state.served_routes(connection))
    )
    resources.wired.notifier.notify(run.run_id, run.attempts + 1)
    return run_to_wire(run, served)


@get(
    "/ready",
    opt=PUBLIC,
    responses={
        200: ResponseSpec(Ready, description="Requests are welcome.", generate_examples=False),
        503: ResponseSpec(Ready, description="They are not; `reasons` says why.", generate_examples=False),
    },
)
async def ready(resources: dependencies.Resources) -> Response[Ready]:
    """Whether the database takes a write and returns it: for load balancers; `/ok` says only that we listen."""
    name = f"ready-{os.getpid()}"

    def probe(connection: Connection) -> bool:
        return state.probe(connection, name)

    done, has_memory = await asyncio.gather(
        resources.readiness.ask(lambda: resources.database.write(probe), lambda: resources.database.condition),
        resources.memory_readiness.ask(partial(_has_memory, resources.wired.recollection)),
    )
    indexed: Literal["ok", "without_index"] = "ok" if resources.wired.memory.is_indexing else "without_index"
    troubles = resources.wired.supervisor.troubles()
    is_ready = done and not troubles
    found = [resources.readiness.reason, resources.memory_readiness.reason, *troubles]
    return Response(
        Ready(
            ready=is_ready,
            memory=indexed if has_memory else "unavailable",
            reasons=[each for each in found if each is not None],
        ),
        status_code=200 if is_ready else 503,
        headers={} if is_ready else {"retry-after": "1"},
    )


def _outdated(connection: Connection, registry: Registry, now: datetime) -> list[OutdatedWaits]:
    """The calls that do not fit, of the questions that were asked first."""
    found: dict[tuple[str, str, str], list[datetime]] = {}
    for asked in state.list_open_waits(connection, count_max=OPEN_COUNT_MAX):
        misfit = misfit_of_wait(registry, asked)
        if misfit is not None:
            found.setdefault((asked.assistant, asked.wait.tool, misfit.kind), []).append(asked.wait.opened_at)
    return [
        OutdatedWaits(*key, count=len(opened), oldest_age_s=round((now - min(opened)).total_seconds(), 3))
        for key, opened in sorted(found.items())
    ]


async def _has_memory(recollection: Recollection) -> bool:
    await recollection.check()
    return True


ROUTES = [workers, queues, redrive, ready]
