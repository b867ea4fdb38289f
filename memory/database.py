"""The memory database: one writer thread that commits for everybody waiting, and readers that see snapshots."""

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, ProgrammingError

from memory.errors import Unavailable
from memory.pools import UPKEEP

__all__ = ["Database", "open_engine"]

READER_COUNT = 4
BATCH_COUNT_MAX = 64
BUSY_TIMEOUT_MS = 5_000
CONNECT_TIMEOUT_S = 5
#: A write that met another process's (a unique index, a deadlock) sees its result when it is tried again.
CONFLICT_ATTEMPT_MAX = 8
T = TypeVar("T")
Unit = Callable[[Connection], Any]


def open_engine(url: str, *, write: bool) -> Engine:
    """An engine for `url` (`sqlite:///path` or `postgresql+psycopg://…`), set up for memory.

    SQLite: WAL, `synchronous=FULL`, deleted rows overwritten with zeros (an erasure means it), write transactions begin
    IMMEDIATE. PostgreSQL: write transactions read committed rows, readers one snapshot.
    """
    if make_url(url).get_backend_name() != "sqlite":
        isolation = "READ COMMITTED" if write else "REPEATABLE READ"
        waits = {"connect_timeout": CONNECT_TIMEOUT_S}
        return create_engine(url, isolation_level=isolation, pool_pre_ping=True, connect_args=waits)
    engine = create_engine(url, connect_args={"isolation_level": None, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: Any) -> None:
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS:d}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA secure_delete=ON")
        if not write:
            connection.execute("PRAGMA query_only=1")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine


class _Write:
    """A queued unit and who waits for it."""

    __slots__ = ("error", "future", "result", "unit")

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.future: Future[Any] = Future()
        self.result: Any = None
        self.error: BaseException | None = None


class Database:
    """Runs units of work (plain functions over a Connection) outside the event loop."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._write_engine = open_engine(url, write=True)
        self._read_engine = open_engine(url, write=False)
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._readers = ThreadPoolExecutor(READER_COUNT, thread_name_prefix="memory-reader")
        self._local = threading.local()
        self._opened: list[Connection] = []
        self._closed = False
        self._writer = threading.Thread(target=self._serve, name="memory-writer", daemon=True)
        self._writer.start()

    @classmethod
    def open(cls, url: str) -> "Database":
        """Open `url`; its tables are there already (see `memory.migrations`)."""
        return cls(url)

    @property
    def is_sqlite(self) -> bool:
        """Whether it is the embedded database."""
        return self._write_engine.dialect.name == "sqlite"

    async def write(self, unit: Callable[[Connection], T]) -> T:
        """The result of `unit` after its commit; a unit that raises is undone alone.

        A caller that is cancelled does not know whether its write stands: every write of memory can be repeated.
        Raises Unavailable when the database cannot be reached.
        """
        if self._closed:
            raise Unavailable("the memory database is closed")
        write = _Write(unit)
        self._queue.put(write)
        return cast(T, await asyncio.wrap_future(write.future))

    async def read(self, query: Callable[[Connection], T]) -> T:
        """The result of `query` over one snapshot. Raises Unavailable when the database cannot be reached."""
        if self._closed:
            raise Unavailable("the memory database is closed")
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._query, query)

    async def checkpoint(self) -> None:
        """Bring the write-ahead log into the database and empty it, so that nothing erased is left in it."""
        if self.is_sqlite:
            await asyncio.get_running_loop().run_in_executor(UPKEEP, self._truncate_log)

    async def close(self) -> None:
        """Commit what is queued and close every connection."""
        self._closed = True
        self._queue.put(None)
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(UPKEEP, self._writer.join)
        await loop.run_in_executor(UPKEEP, self._readers.shutdown)
        for connection in self._opened:
            connection.close()
        self._write_engine.dispose()
        self._read_engine.dispose()

    def _truncate_log(self) -> None:
        raw = self._write_engine.raw_connection()
        try:
            raw.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            raw.close()

    def _query(self, query: Callable[[Connection], T]) -> T:
        try:
            connection = getattr(self._local, "connection", None)
            if connection is None or connection.closed or connection.invalidated:
                connection = self._local.connection = self._read_engine.connect()
                self._opened.append(connection)
            # A rollback, never a commit: it ends the snapshot, so that the log can be checkpointed.
            with connection.begin() as transaction:
                result = query(connection)
                transaction.rollback()
        # A table that is missing (before the migration) is the one kind of error on SQLite, the other on PostgreSQL.
        except (OperationalError, ProgrammingError) as error:
            raise Unavailable("the memory database cannot be read") from error
        return result

    def _serve(self) -> None:
        connection: Connection | None = None
        more = True
        while more:
            batch, more = self._next_batch()
            if batch:
                connection = self._commit(connection, batch)
            for write in batch:
                if not write.future.set_running_or_notify_cancel():
                    continue
                if write.error is not None:
                    write.future.set_exception(write.error)
                else:
                    write.future.set_result(write.result)
        if connection is not None:
            connection.close()

    def _next_batch(self) -> tuple[list[_Write], bool]:
        write = self._queue.get()
        batch: list[_Write] = []
        while write is not None:
            batch.append(write)
            if len(batch) >= BATCH_COUNT_MAX:
                return batch, True
            try:
                write = self._queue.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, False

    def _commit(self, connection: Connection | None, batch: list[_Write]) -> Connection | None:
        """Apply the batch in one transaction; if that fails, every write again and alone."""
        try:
            connection = connection or self._write_engine.connect()
            with connection.begin():
                for write in batch:
                    _apply(connection, write)
        except Exception as error:
            connection = _given_up(connection)
            if len(batch) > 1:
                for write in batch:
                    write.result = write.error = None
                    connection = self._commit(connection, [write])
                return connection
            return self._retry(connection, batch[0], error)
        return connection

    def _retry(self, connection: Connection | None, write: _Write, error: Exception) -> Connection | None:
        for _ in range(CONFLICT_ATTEMPT_MAX):
            if not isinstance(error, IntegrityError | OperationalError):
                break
            try:
                connection = connection or self._write_engine.connect()
                with connection.begin():
                    write.result, write.error = write.unit(connection), None
            except Exception as again:
                connection, error = _given_up(connection), again
            else:
                return connection
        if isinstance(error, DBAPIError) and not isinstance(error, IntegrityError):
            unavailable = Unavailable("the memory database did not take the write")
            unavailable.__cause__ = error
            write.error = unavailable
        else:
            write.error = error
        return connection


def _apply(connection: Connection, write: _Write) -> None:
    try:
        with connection.begin_nested():
            write.result = write.unit(connection)
    except DBAPIError:
        raise
    except Exception as error:
        write.error = error


def _given_up(connection: Connection | None) -> Connection | None:
    """A connection whose transaction failed is not used again."""
    if connection is not None:
        connection.invalidate()
        connection.close()
    return None
