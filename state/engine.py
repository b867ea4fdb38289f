"""Engines for the two databases, set up for the journal."""

from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url

__all__ = ["is_sqlite", "normal_url", "open_engine"]

BUSY_TIMEOUT_MS = 5_000
#: A lock that somebody holds for longer is a defect; waiting for it would stop everybody behind.
LOCK_TIMEOUT_MS = 10_000


def normal_url(url: str) -> str:
    """`url` with the driver that this package uses."""
    if url.startswith("postgresql://"):
        return "postgresql+psycopg://" + url.removeprefix("postgresql://")
    return url


def is_sqlite(url: str) -> bool:
    """Whether `url` names a SQLite file."""
    return make_url(normal_url(url)).get_backend_name() == "sqlite"


def open_engine(url: str, *, write: bool, synchronous: str = "FULL") -> Engine:
    """An engine for `url`: `sqlite:///path` or `postgresql://…`."""
    if is_sqlite(url):
        return _sqlite(url, write=write, synchronous=synchronous)
    return _postgresql(normal_url(url), write=write)


def _sqlite(url: str, *, write: bool, synchronous: str) -> Engine:
    """WAL; `synchronous=FULL`, so a commit survives a power cut; write transactions begin IMMEDIATE, because a
    deferred one that has read first is refused at once (SQLITE_BUSY_SNAPSHOT) whatever the busy time-out says.
    """
    # Without this the driver begins by itself, deferred.
    engine = create_engine(
        url, connect_args={"isolation_level": None, "check_same_thread": False}, hide_parameters=True
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: Any) -> None:
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS:d}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL" if synchronous == "FULL" else "PRAGMA synchronous=NORMAL")
        # An erased word must not stay behind in the free space of its page.
        connection.execute("PRAGMA secure_delete=ON" if write else "PRAGMA query_only=1")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine


def _postgresql(url: str, *, write: bool) -> Engine:
    engine = create_engine(
        url,
        # A reader sees one snapshot for its whole query; writers re-read after each lock they waited for.
        isolation_level="READ COMMITTED" if write else "REPEATABLE READ",
        pool_size=1 if write else 4,
        max_overflow=4,
        pool_pre_ping=True,
        hide_parameters=True,  # an error that is logged would quote what people said
        connect_args={"connect_timeout": 5, "application_name": "threadmark"},
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: Any) -> None:
        # Not as options of the connection: poolers refuse those, or swallow them.
        connection.execute(f"SET lock_timeout = {LOCK_TIMEOUT_MS:d}")
        connection.execute("SET idle_in_transaction_session_timeout = 60000")
        if write:
            # Units look rows up by their keys. A plan is kept as long as the statistics are, and one that was made
            # while a table was nearly empty would read the whole of it until somebody analyses it.
            connection.execute("SET enable_seqscan = off")
            # Nor does a key's value change the plan: planning anew for each takes longer than an append itself.
            connection.execute("SET plan_cache_mode = force_generic_plan")
        connection.commit()

    return engine
