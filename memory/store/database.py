"""The memory database: one writer with group commit, and readers with snapshots."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar, cast

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, IntegrityError

from threadmark.db import (
    DEFAULT_LIMITS,
    Condition,
    Limits,
    Purpose,
    condition_of,
    is_sqlite,
    postgresql_engine,
    sqlite_engine,
)
from threadmark.db.engine import truncate_log
from threadmark.db.errors import DatabaseAway, DatabaseClosed
from threadmark.db.execution.snapshot_reader import SnapshotReader
from threadmark.db.execution.writer import Writer
from threadmark.memory.errors import Unavailable
from threadmark.memory.pools import UPKEEP

__all__ = ["Database", "open_engine"]

READER_COUNT = 4
T = TypeVar("T")


def open_engine(url: str, *, write: bool, limits: Limits = DEFAULT_LIMITS, purpose: Purpose | None = None) -> Engine:
    """An engine for `url` (`sqlite:///path` or `postgresql+psycopg://…`), set up for memory.

    SQLite: WAL, `synchronous=FULL`, deleted rows overwritten with zeros (an erasure means it), write transactions begin
    IMMEDIATE. PostgreSQL: write transactions read committed rows, readers one snapshot.
    """
    if is_sqlite(url):
        return sqlite_engine(url, write=write)
    meant = purpose or (Purpose.WRITE if write else Purpose.READ)
    return postgresql_engine(url, write=write, limits=limits, purpose=meant)


class Database:
    """Runs units of work (plain functions over a Connection) outside the event loop."""

    def __init__(self, url: str, limits: Limits = DEFAULT_LIMITS) -> None:
        self.url = url
        self.limits = limits
        self._write_engine = open_engine(url, write=True, limits=limits)
        self._read_engine = open_engine(url, write=False, limits=limits)
        self._writer = Writer(
            self._write_engine,
            "memory-writer",
            wait_s=limits.request_s,
            database="memory",
            savepoints=True,
            is_conflict=_is_conflict,
        )
        self._reader = SnapshotReader(
            self._read_engine, "memory-reader", reader_count=READER_COUNT, wait_s=limits.request_s, database="memory"
        )
        self._closed = False

    @classmethod
    def open(cls, url: str, limits: Limits = DEFAULT_LIMITS) -> "Database":
        """Open `url`; its tables are there already (see `threadmark.memory.migrations`)."""
        return cls(url, limits)

    @property
    def is_sqlite(self) -> bool:
        """Whether it is the embedded database."""
        return self._write_engine.dialect.name == "sqlite"

    async def write(self, unit: Callable[[Connection], T]) -> T:
        """The result of `unit` after its commit; a unit that raises is undone alone.

        Every write of memory can be repeated, so one whose commit was lost with its connection is tried again. Raises
        Unavailable when the database cannot be reached, or cannot do it now.
        """
        with _as_unavailable("did not take the write"):
            return cast(T, await self._writer.submit(unit, repeatable=True))

    async def read(self, query: Callable[[Connection], T]) -> T:
        """The result of `query` over one snapshot; tenants take turns.

        Raises Unavailable when the database cannot be reached, and TookTooLong for a request that has exceeded its time
        limit. When the caller is cancelled, its query is cancelled too, also on the server.
        """
        if self._closed:
            raise Unavailable("the memory database is closed")
        with _as_unavailable("cannot be read"):
            return await self._reader.read(query)

    async def checkpoint(self) -> None:
        """Bring the write-ahead log into the database and empty it, so that nothing erased is left in it.

        Raises Unavailable while a reader holds an older snapshot.
        """
        if self.is_sqlite and not await UPKEEP.run(partial(truncate_log, self._write_engine)):
            raise Unavailable("the memory database's log is still read", Condition.BUSY)

    async def close(self) -> None:
        """Commit what is queued and close every connection. Closing again has no effect."""
        if self._closed:
            return
        self._closed = True
        await self._writer.close()
        await UPKEEP.run(self._reader.shutdown)
        self._write_engine.dispose()
        self._read_engine.dispose()


def _is_conflict(error: Exception) -> bool:
    """Whether a write met another process's at a unique index: when it is tried again it sees that one's rows."""
    return isinstance(error, IntegrityError)


@contextmanager
def _as_unavailable(what: str) -> Iterator[None]:
    """Raise what the layer below could not do as memory's own error.

    A table that is missing, before the migration, has no condition.
    """
    try:
        yield
    except (DatabaseAway, DatabaseClosed) as error:
        raise Unavailable(str(error), getattr(error, "condition", None)) from error
    except IntegrityError:
        raise
    except DBAPIError as error:
        raise Unavailable(f"the memory database {what}", condition_of(error)) from error
