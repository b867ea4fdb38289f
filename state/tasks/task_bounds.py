"""The limit on a tenant's open background work."""

from collections.abc import Collection

from sqlalchemy import Connection, func, literal_column, select

from threadmark.state import tables
from threadmark.state.errors import BoundReached

__all__ = ["check_background_jobs"]

RETRY_S = 10.0
#: Matches the predicate of the index; bind parameters would keep PostgreSQL from using it.
_IS_OPEN = literal_column("status").in_([literal_column("'pending'"), literal_column("'running'")])


def check_background_jobs(connection: Connection, tenant_id: str, kinds: Collection[str], count_max: int) -> None:
    """Raise BoundReached if `count_max` tasks of these kinds are pending or running for the tenant."""
    task = tables.task.c
    found = (
        select(literal_column("1"))
        .select_from(tables.task)
        .where(task.tenant_id == tenant_id, task.kind.in_(sorted(kinds)), _IS_OPEN)
        .limit(count_max)
        .subquery()
    )
    if connection.execute(select(func.count()).select_from(found)).scalar_one() >= count_max:
        raise BoundReached("background_jobs", count_max, RETRY_S)
