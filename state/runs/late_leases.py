"""Leases that ended while their workers waited for SQLite's write lock to renew them."""

from collections.abc import Callable, Iterable

from sqlalchemy import Connection, select, update

from threadmark.db.prepared import Prepared
from threadmark.state import tables
from threadmark.state.entries.instants import database_now_us

__all__ = ["spare"]

_worker = tables.worker.c
#: The workers whose lease has ended.
_LATE = Prepared(select(_worker.worker_id).where(_worker.lease_until <= database_now_us()))


def spare(connection: Connection, beating: Callable[[Iterable[str]], list[str]], ttl_s: float) -> list[str]:
    """Renew ended leases of workers that are known to live (`Liveness.beating`); their ids.

    In the transaction of a claim, before it: with the lock that all wait for, so that the claim takes nothing that they
    hold. Whoever is frozen beats no more, and is not spared.
    """
    late = [row.worker_id for row in _LATE.all(connection, {})]
    spared = beating(late) if late else []
    if spared:
        until = database_now_us() + round(ttl_s * 1_000_000)
        connection.execute(update(tables.worker).where(_worker.worker_id.in_(spared)).values(lease_until=until))
    return spared
