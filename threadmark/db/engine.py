"""Engines: SQLite's files for their owner alone, and PostgreSQL with limits on every wait."""

import contextlib
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url

from threadmark.db.limits import Limits, Purpose
from threadmark.db.postgresql import TimedConnection, connection_options, prepare_session
from threadmark.db.url import normal_url

__all__ = ["postgresql_engine", "sqlite_engine", "truncate_log"]

BUSY_TIMEOUT_MS = 5_000
#: How long an emptying of the log waits for readers of older snapshots, and how often it tries (seconds).
TRUNCATE_S = 10.0
TRUNCATE_DELAY_S = 0.05
_OWNER_ONLY = 0o600
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def sqlite_engine(url: str, *, write: bool, synchronous: str = "FULL") -> Engine:
    """WAL; `synchronous=FULL`, so a commit survives a power cut; write transactions begin IMMEDIATE, because a
    deferred one that has read first is refused at once (SQLITE_BUSY_SNAPSHOT) whatever the busy time-out says.
    """
    # Without this the driver begins by itself, deferred.
    engine = create_engine(
        url, connect_args={"isolation_level": None, "check_same_thread": False}, hide_parameters=True
    )
    path = make_url(url).database

    @event.listens_for(engine, "do_connect")
    def _keep_private(_dialect: Any, _record: Any, _arguments: Any, _options: Any) -> None:
        if path:
            _make_private(Path(path), is_ours=write)

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: Any) -> None:
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS:d}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL" if synchronous == "FULL" else "PRAGMA synchronous=NORMAL")
        # An erased word must not stay behind in the free space of its page.
        connection.execute("PRAGMA secure_delete=ON" if write else "PRAGMA query_only=1")

    _close_what_comes_late(engine)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine


def postgresql_engine(
    url: str,
    *,
    write: bool,
    limits: Limits,
    purpose: Purpose,
    prepare: Callable[[Any], None] | None = None,
) -> Engine:
    """An engine whose connections are for `purpose`; `prepare` is called with each new one."""
    place = make_url(normal_url(url))
    # What the address itself says goes first.
    options = {name: value for name, value in connection_options(limits).items() if name not in place.query}
    engine = create_engine(
        place,
        # A reader sees one snapshot for its whole query; writers re-read after each lock they waited for.
        isolation_level="READ COMMITTED" if write else "REPEATABLE READ",
        pool_size=1 if write else 4,
        max_overflow=4,
        pool_pre_ping=True,
        hide_parameters=True,  # an error that is logged would quote what people said
        connect_args=options,
    )

    @event.listens_for(engine, "do_connect")
    def _connect(_dialect: Any, _record: Any, arguments: Any, options: Any) -> TimedConnection:
        return TimedConnection.connect(*arguments, **options)

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: Any) -> None:
        prepare_session(connection, limits, purpose)
        if prepare is not None:
            prepare(connection)
        connection.commit()

    _close_what_comes_late(engine)
    return engine


def _close_what_comes_late(engine: Engine) -> None:
    """Close connections that are returned after the engine was disposed of: the pool would not."""
    is_disposed = False

    @event.listens_for(engine, "engine_disposed")
    def _dispose(_engine: Engine) -> None:
        nonlocal is_disposed
        is_disposed = True

    @event.listens_for(engine, "checkin")
    def _check_in(connection: Any | None, _record: Any) -> None:
        if is_disposed and connection is not None:
            connection.close()


def _make_private(path: Path, *, is_ours: bool) -> None:
    """Make a file that is not there, for its owner alone; SQLite gives the files beside it the same rights.

    A file that an older version left readable by others is closed to them by the process that writes it.
    """
    # A folder that is missing, or closed to this process, is SQLite's to complain of.
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, _OWNER_ONLY))
        return
    if not is_ours:
        return
    for each in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        with contextlib.suppress(OSError):
            if stat.S_IMODE(each.stat().st_mode) & _OTHERS:
                each.chmod(_OWNER_ONLY)


def truncate_log(engine: Engine, *, wait_s: float = TRUNCATE_S) -> bool:
    """Bring SQLite's write-ahead log into the database and empty it, so that no erased text is left in it. Blocks.

    False when a snapshot of a reader, in any process, kept the log for `wait_s` seconds.
    """
    until = time.monotonic() + wait_s
    with contextlib.closing(engine.raw_connection()) as connection:
        while True:
            cursor = connection.cursor()
            (is_busy, _, _) = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            cursor.close()
            if not is_busy:
                return True
            if time.monotonic() >= until:
                return False
            time.sleep(TRUNCATE_DELAY_S)
