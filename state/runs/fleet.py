"""What operators look at: the workers, the queue, what nobody can run, and whether the database answers."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec
from sqlalchemy import Connection, delete, func, insert, select

from threadmark.db.portable import greatest
from threadmark.state import statements, tables
from threadmark.state.entries.instants import database_now_us, from_us
from threadmark.state.runs.run_status import RunStatus

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
    "unserved_routes",
]

#: The time over which workers count their recent claims (seconds).
RATE_WINDOW_S = 60

_PROBE_TENANT = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSeen:
    """A long-lived task of a worker. `age_s`: since its last round ended well; None: none has yet."""

    name: str
    age_s: float | None
    error_count: int
    is_stale: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSeen:
    """An enrolled worker. `lease_left_s` below 0 means that nobody has buried it yet.

    What it counts is as old as its last heartbeat: claims since its start and, of these, orphans taken over; claims in
    the last RATE_WINDOW_S seconds; and how long its event loop kept a call waiting (seconds).
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
    """All enrolled workers, oldest first."""
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
    """The loops of a heartbeat that is `since_s` seconds old, with their ages of today."""
    told = msgspec.json.decode(spelled, type=list[LoopSeen])
    return [each if each.age_s is None else replace(each, age_s=each.age_s + since_s) for each in told]


def queue_depths(connection: Connection) -> list[QueueDepth]:
    """Unfinished runs by route, status and what they are parked for."""
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
    """How long ago the run became claimable that has waited longest for nothing but a worker; 0 without one."""
    run = tables.run.c
    row = connection.execute(
        select(func.min(greatest(run.due_at, run.updated_at)).label("since"), database_now_us().label("now"))
        .join(tables.thread, tables.thread.c.number == run.thread)
        .where(statements.CLAIMABLE)
    ).one()
    return 0.0 if row.since is None else max(0.0, (row.now - row.since) / 1_000_000)


def served_routes(connection: Connection) -> frozenset[str]:
    """Routes that a worker with a live lease serves: each of its agents, by name and by name@version."""
    worker = tables.worker.c
    live = connection.execute(select(worker.agents).where(worker.lease_until > database_now_us())).scalars()
    agents = [msgspec.json.decode(each, type=dict[str, str]) for each in live]
    return frozenset(
        route for each in agents for name, version in each.items() for route in (name, f"{name}@{version}")
    )


def unserved_routes(connection: Connection, routes: Collection[str] | None = None) -> list[str]:
    """Routes (of `routes`, or of all unfinished runs) that no live worker serves: their runs wait for a deploy."""
    if routes is None:
        run = tables.run.c
        unfinished = run.status.in_([RunStatus.PENDING, RunStatus.RUNNING])
        routes = (
            connection.execute(select(run.route).where(unfinished, run.hidden.is_(False)).distinct()).scalars().all()
        )
    return sorted(set(routes) - served_routes(connection))


def probe(connection: Connection, name: str) -> bool:
    """Write a row, read it back, remove it: whether the database does its work."""
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
