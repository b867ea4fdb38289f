"""Fleet figures for operators: the workers, the queue, runs that no worker can take, a database probe,
and leases that a wait for SQLite's write lock kept from being renewed."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec
from sqlalchemy import Connection, delete, func, insert, select, update

from threadmark.db.portable import greatest
from threadmark.db.prepared import Prepared
from threadmark.state import statements, tables
from threadmark.state.entries.instants import database_now_us, from_us
from threadmark.state.entries.run_status import RunStatus

__all__ = [
    "RATE_WINDOW_S",
    "LoopSeen",
    "QueueDepth",
    "WorkerSeen",
    "claim_lag_s",
    "list_workers",
    "probe",
    "queue_depths",
    "served_routes",
    "spare",
    "unserved_routes",
]

_worker = tables.worker.c
#: The workers whose lease has expired.
_LATE = Prepared(select(_worker.worker_id).where(_worker.lease_until <= database_now_us()))

#: The window in which workers count recent claims (seconds).
RATE_WINDOW_S = 60

_PROBE_TENANT = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSeen:
    """A long-lived loop of a worker. `age_s`: time since its last successful round; None before the first."""

    name: str
    age_s: float | None
    error_count: int
    is_stale: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSeen:
    """A registered worker. A `lease_left_s` below 0 means that the lease has expired and nobody has reaped the worker.

    The counts date from the last heartbeat: claims since the start and how many of them took over orphans; claims in
    the last RATE_WINDOW_S seconds; and how long the event loop kept a call waiting (seconds).
    """

    worker_id: str
    started_at: datetime
    lease_left_s: float
    agents: dict[str, str]  #: name -> version
    turn_count: int
    claim_count: int
    orphan_count: int
    recent_claim_count: int
    loop_lag_s: float
    loops: list[LoopSeen]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDepth:
    """The runs of one route in one status. Ages in seconds, of the oldest one."""

    route: str
    status: str
    parked: str | None
    count: int
    oldest_age_s: float


def list_workers(connection: Connection) -> list[WorkerSeen]:
    """All registered workers, oldest first."""
    turns = (
        select(func.count(tables.thread.c.number))
        .where(tables.thread.c.owner == tables.worker.c.worker_id)
        .scalar_subquery()
    )
    rows = connection.execute(
        select(tables.worker, database_now_us().label("now"), turns.label("turns")).order_by(
            tables.worker.c.started_at, tables.worker.c.worker_id
        )
    )
    return [
        WorkerSeen(
            loops=_loops(row.loops, max(0.0, (row.now - row.beat_at) / 1_000_000)),
            worker_id=row.worker_id,
            started_at=from_us(row.started_at),
            lease_left_s=(row.lease_until - row.now) / 1_000_000,
            agents=msgspec.json.decode(row.agents, type=dict[str, str]),
            turn_count=row.turns,
            claim_count=row.claim_count,
            orphan_count=row.orphan_count,
            recent_claim_count=row.recent_claim_count,
            loop_lag_s=row.loop_lag_us / 1_000_000,
        )
        for row in rows
    ]


def _loops(spelled: str, since_s: float) -> list[LoopSeen]:
    """The loops in a heartbeat that is `since_s` seconds old, with their present ages."""
    told = msgspec.json.decode(spelled, type=list[LoopSeen])
    return [each if each.age_s is None else replace(each, age_s=each.age_s + since_s) for each in told]


def queue_depths(connection: Connection) -> list[QueueDepth]:
    """Unfinished runs by route, status and park reason."""
    run = tables.run.c
    rows = connection.execute(
        select(
            run.route,
            run.status,
            run.parked,
            func.count(run.number).label("count"),
            func.min(run.created_at).label("oldest"),
            database_now_us().label("now"),
        )
        .where(run.status.in_([RunStatus.PENDING, RunStatus.RUNNING]), run.hidden.is_(False))
        .group_by(run.route, run.status, run.parked)
        .order_by(run.route, run.status, run.parked)
    )
    return [
        QueueDepth(
            route=row.route,
            status=row.status,
            parked=row.parked,
            count=row[3],
            oldest_age_s=max(0.0, (row.now - row.oldest) / 1_000_000),
        )
        for row in rows
    ]


def claim_lag_s(connection: Connection) -> float:
    """For how long the oldest claimable run has waited for a worker (seconds); 0 if there is none."""
    run = tables.run.c
    row = connection.execute(
        select(func.min(greatest(run.due_at, run.updated_at)).label("since"), database_now_us().label("now"))
        .join(tables.thread, tables.thread.c.number == run.thread)
        .where(statements.CLAIMABLE)
    ).one()
    return 0.0 if row.since is None else max(0.0, (row.now - row.since) / 1_000_000)


def served_routes(connection: Connection) -> frozenset[str]:
    """Routes that a worker with a live lease serves: each of its agents, as name and as name@version."""
    worker = tables.worker.c
    live = connection.execute(select(worker.agents).where(worker.lease_until > database_now_us())).scalars()
    agents = [msgspec.json.decode(each, type=dict[str, str]) for each in live]
    return frozenset(
        route for each in agents for name, version in each.items() for route in (name, f"{name}@{version}")
    )


def unserved_routes(connection: Connection, routes: Collection[str] | None = None) -> list[str]:
    """Routes (of `routes`, or of all unfinished runs) that no live worker serves; their runs wait for a deploy."""
    if routes is None:
        run = tables.run.c
        unfinished = run.status.in_([RunStatus.PENDING, RunStatus.RUNNING])
        routes = (
            connection.execute(select(run.route).where(unfinished, run.hidden.is_(False)).distinct()).scalars().all()
        )
    return sorted(set(routes) - served_routes(connection))


def probe(connection: Connection, name: str) -> bool:
    """Write a row, read it back, and delete it; True if the database does all three."""
    receipt = tables.receipt
    chosen = (receipt.c.tenant_id == _PROBE_TENANT, receipt.c.key == name)
    connection.execute(delete(receipt).where(*chosen))
    connection.execute(
        insert(receipt),
        {"tenant_id": _PROBE_TENANT, "key": name, "request_digest": name, "created_at": 0},
    )
    found = connection.execute(select(receipt.c.request_digest).where(*chosen)).scalar_one_or_none()
    connection.execute(delete(receipt).where(*chosen))
    return found == name


def spare(connection: Connection, beating: Callable[[Iterable[str]], list[str]], ttl_s: float) -> list[str]:
    """Renew the expired leases of workers that are known to live (`Liveness.beating`); returns their ids.

    Called in a claim's transaction, before the claim: it holds the write lock that those workers wait for, and the
    claim then takes nothing that they hold. A frozen worker no longer beats and is not spared.
    """
    late = [row.worker_id for row in _LATE.all(connection, {})]
    spared = beating(late) if late else []
    if spared:
        until = database_now_us() + round(ttl_s * 1_000_000)
        connection.execute(update(tables.worker).where(_worker.worker_id.in_(spared)).values(lease_until=until))
    return spared
