"""Budgets: money that several compactions may spend together, in any process. The database keeps the bound."""

from sqlalchemy import Connection, func, insert, or_, select, update

from threadmark.compaction import tables
from threadmark.compaction.errors import BudgetSpent

__all__ = ["charge", "open_purse", "purse_left", "purse_spent"]

_purse, _compaction = tables.purse.c, tables.compaction.c


def open_purse(connection: Connection, purse_id: str, tenant_id: str, total: int | None) -> None:
    """A purse with so many picos; None: it has no bound, and counts."""
    connection.execute(insert(tables.purse), {"purse_id": purse_id, "tenant_id": tenant_id, "total": total, "spent": 0})


def purse_spent(connection: Connection, purse_id: str) -> int:
    """Picos that were spent from it, with what is set aside for calls that are on their way."""
    return connection.execute(select(_purse.spent).where(_purse.purse_id == purse_id)).scalar_one_or_none() or 0


def purse_left(connection: Connection, purse_id: str) -> int | None:
    """Picos that may still be spent from it; None: any number."""
    row = connection.execute(select(_purse.total, _purse.spent).where(_purse.purse_id == purse_id)).one_or_none()
    return None if row is None or row.total is None else row.total - row.spent


def charge(
    connection: Connection, compaction_id: str | None, purse_id: str | None, picos: int, *, is_ahead: bool
) -> None:
    """Note money as spent, of the compaction and from its purse; a negative sum gives back.

    Raises BudgetSpent when the purse has less and the call is ahead; the caller's transaction is to be given up then.
    """
    if purse_id is not None:
        paid = update(tables.purse).where(_purse.purse_id == purse_id).values(spent=_purse.spent + picos)
        enough = or_(_purse.total.is_(None), _purse.spent + picos <= _purse.total)
        # What a call has cost is noted whatever it is; only what is set aside before one has to be there.
        done = connection.execute(paid.where(enough) if is_ahead else paid)
        if done.rowcount != 1:
            raise BudgetSpent(purse_id)
    if compaction_id is not None:
        connection.execute(
            update(tables.compaction)
            .where(_compaction.compaction_id == compaction_id)
            .values(cost=func.coalesce(_compaction.cost, 0) + picos)
        )
