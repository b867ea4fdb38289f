"""SQLAlchemy engines for the two databases, configured for the journal."""

from typing import Any

from sqlalchemy import Engine

from threadmark.db import DEFAULT_LIMITS, Limits, Purpose, is_sqlite, normal_url, postgresql_engine, sqlite_engine

__all__ = ["is_sqlite", "normal_url", "open_engine"]


def open_engine(
    url: str,
    *,
    write: bool,
    synchronous: str = "FULL",
    limits: Limits = DEFAULT_LIMITS,
    purpose: Purpose | None = None,
) -> Engine:
    """An engine for `url`: `sqlite:///path` or `postgresql://…`. Without `purpose`, `write` selects the default one."""
    if is_sqlite(url):
        return sqlite_engine(url, write=write, synchronous=synchronous)
    meant = purpose or (Purpose.WRITE if write else Purpose.READ)
    return postgresql_engine(url, write=write, limits=limits, purpose=meant, prepare=_prepare_writer if write else None)


def _prepare_writer(connection: Any) -> None:
    # Units look rows up by key. A cached plan lives as long as the table statistics, and one made while a table was
    # nearly empty would scan the whole table until the next ANALYZE.
    connection.execute("SET enable_seqscan = off")
    # Key values do not change the plan either: planning per value takes longer than an append itself.
    connection.execute("SET plan_cache_mode = force_generic_plan")
