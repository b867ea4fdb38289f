"""A database: one writer thread with group commit, and readers that see snapshots."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, Engine, create_engine, event, make_url

from state.append import Append
from state.writer import Writer

__all__ = ["Database", "open_engine"]

READER_COUNT = 4
BUSY_TIMEOUT_MS = 5_000
T = TypeVar("T")


def open_engine(url: str, *, write: bool, synchronous: str = "FULL") -> Engine:
    """An engine for `url` (`sqlite:///path`), set up for the journal.

    SQLite: WAL; `synchronous=FULL`, so a commit survives a power cut; write transactions begin IMMEDIATE, because a
    deferred one that has read first is refused at once (SQLITE_BUSY_SNAPSHOT) whatever the busy time-out says.
    """
    # An explicit isolation level would make the driver begin by itself, deferred.
    engine = create_engine(url, connect_args={"isolation_level": None, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: Any) -> None:
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS:d}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL" if synchronous == "FULL" else "PRAGMA synchronous=NORMAL")
        if not write:
            connection.execute("PRAGMA query_only=1")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine


class Database:
    """Runs units of work (plain functions over a Connection) outside the event loop.

    No connection is ever held while a tool or a model runs, and none is checked out by a task that can be cancelled.
    """

    def __init__(self, write_engine: Engine, read_engine: Engine) -> None:
        self.url = write_engine.url
        self._write_engine = write_engine
        self._read_engine = read_engine
        self._writer = Writer(write_engine, "threadmark-writer")
        self._readers = ThreadPoolExecutor(READER_COUNT, thread_name_prefix="threadmark-reader")
        self._local = threading.local()
        self._opened: list[Connection] = []
        self.read_count = 0

    @classmethod
    def open(cls, url: str, *, synchronous: str = "FULL") -> "Database":
        """Open `url`; tables are there already (see `state.migrate`)."""
        make_url(url)
        return cls(
            open_engine(url, write=True, synchronous=synchronous),
            open_engine(url, write=False, synchronous=synchronous),
        )

    @property
    def commit_count(self) -> int:
        """Commits so far: what the tests count."""
        return self._writer.commit_count

    async def write(self, unit: Callable[[Connection], T]) -> T:
        """The result of `unit` after its commit; a unit that raises is undone alone."""
        return cast(T, await self._writer.submit(unit))

    async def append(self, append: Append) -> int | None:
        """The thread's inbox counter after the append is on disk; None if the fence or the head had moved."""
        return cast("int | None", await self._writer.submit(append))

    async def read(self, query: Callable[[Connection], T]) -> T:
        """The result of `query` over one snapshot."""
        self.read_count += 1
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._query, query)

    async def close(self) -> None:
        """Commit what is queued and close every connection."""
        await self._writer.close()
        await asyncio.get_running_loop().run_in_executor(None, self._readers.shutdown)
        for connection in self._opened:
            connection.close()
        self._write_engine.dispose()
        self._read_engine.dispose()

    def _query(self, query: Callable[[Connection], T]) -> T:
        connection = getattr(self._local, "connection", None)
        if connection is None or connection.closed:
            connection = self._local.connection = self._read_engine.connect()
            self._opened.append(connection)
        # A rollback, never a commit: it ends the snapshot, so that the WAL can be checkpointed.
        with connection.begin() as transaction:
            result = query(connection)
            transaction.rollback()
        return result
