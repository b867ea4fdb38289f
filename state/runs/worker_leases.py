"""Leases of workers: who lives, by the database's own clock."""

from collections.abc import Collection, Mapping

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, insert, select, true, update

from threadmark.state import tables
from threadmark.state.entries.instants import database_now_us

__all__ = ["expire", "has_lease", "heartbeat", "register"]


def register(connection: Connection, worker_id: str, ttl_s: float, agents: str) -> None:
    """Begin a worker's lease, or replace its expired one."""
    connection.execute(delete(tables.worker).where(tables.worker.c.worker_id == worker_id))
    now = connection.execute(select(database_now_us())).scalar_one()
    connection.execute(
        insert(tables.worker),
        {
            "worker_id": worker_id,
            "lease_until": now + round(ttl_s * 1_000_000),
            "started_at": now,
            "beat_at": now,
            "agents": agents,
        },
    )


def heartbeat(
    connection: Connection,
    worker_id: str,
    ttl_s: float,
    counts: Mapping[str, int | str] | None = None,
    *,
    if_late: bool = False,
) -> bool:
    """Renew a worker's lease, and store its `counts` (fields of `WorkerSeen`).

    False if the worker was reaped or its lease had expired: its threads may have been taken. `if_late` renews even an
    expired lease, for a worker that all others have spared (see `spare`).
    """
    lives = true() if if_late else tables.worker.c.lease_until >= database_now_us()
    renewed = connection.execute(
        update(tables.worker)
        .where(tables.worker.c.worker_id == worker_id, lives)
        .values(lease_until=database_now_us() + round(ttl_s * 1_000_000), beat_at=database_now_us(), **(counts or {}))
    )
    return renewed.rowcount == 1


def has_lease(worker_id: ColumnElement[str | None]) -> ColumnElement[bool]:
    """Whether the worker named by a column has a live lease: a condition for other queries, by the database's clock."""
    lives = and_(tables.worker.c.worker_id == worker_id, tables.worker.c.lease_until > database_now_us())
    return exists().where(lives)


def expire(connection: Connection, worker_ids: Collection[str]) -> None:
    """End the leases of workers that are known to be dead; their threads are claimable at once."""
    connection.execute(delete(tables.worker).where(tables.worker.c.worker_id.in_(list(worker_ids))))
