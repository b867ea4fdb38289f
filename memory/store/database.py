"""The memory database: one writer thread that commits for everybody waiting, and readers that see snapshots."""

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, IntegrityError

from threadmark.db import (
    DEFAULT_LIMITS,
    Condition,
    Limits,
    Purpose,
    allow_until,
    condition_of,
    is_sqlite,
    postgresql_engine,
    sqlite_engine,
)
from threadmark.memory.errors import Unavailable
from threadmark.memory.pools import UPKEEP

__all__ = ["Database", "open_engine"]

READER_COUNT = 4
BATCH_COUNT_MAX = 64
#: A write that met another process's (a unique index, a deadlock) sees its result when it is tried again.
CONFLICT_ATTEMPT_MAX = 8
#: What an attempt gets at least that began just before its deadline (seconds).
ATTEMPT_S_MIN = 2.0
_PASSING = frozenset({Condition.AWAY, Condition.BUSY, Condition.TOO_MANY_CONNECTIONS})
T = TypeVar("T")
Unit = Callable[[Connection], Any]


def open_engine(url: str, *, write: bool, limits: Limits = DEFAULT_LIMITS, purpose: Purpose | None = None) -> Engine:
    """An engine for `url` (`sqlite:///path` or `postgresql+psycopg://…`), set up for memory.

    SQLite: WAL, `synchronous=FULL`, deleted rows overwritten with zeros (an erasure means it), write transactions begin
    IMMEDIATE. PostgreSQL: write transactions read committed rows, readers one snapshot.
    """
    if is_sqlite(url):
        return sqlite_engine(url, write=write)
    meant = purpose or (Purpose.WRITE if write else Purpose.READ)
    return postgresql_engine(url, write=write, limits=limits, purpose=meant)


class _Write:
    """A queued unit and who waits for it; after `deadline` (of `time.monotonic()`) no further attempt begins."""

    __slots__ = ("deadline", "error", "future", "has_begun", "result", "unit")

    def __init__(self, unit: Unit, wait_s: float) -> None:
        self.unit = unit
        self.deadline = time.monotonic() + wait_s
        self.has_begun = False
        self.future: Future[Any] = Future()
        self.result: Any = None
        self.error: BaseException | None = None


class Database:
    """Runs units of work (plain functions over a Connection) outside the event loop."""

    def __init__(self, url: str, limits: Limits = DEFAULT_LIMITS) -> None:
        self.url = url
        self._limits = limits
        self._write_engine = open_engine(url, write=True, limits=limits)
        self._read_engine = open_engine(url, write=False, limits=limits)
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._readers = ThreadPoolExecutor(READER_COUNT, thread_name_prefix="memory-reader")
        self._local = threading.local()
        self._opened: list[Connection] = []
        self._closed = False
        self._condition: Condition | None = None
        self._writer = threading.Thread(target=self._serve, name="memory-writer", daemon=True)
        self._writer.start()

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

        A caller that is cancelled does not know whether its write stands: every write of memory can be repeated.
        Raises Unavailable when the database cannot be reached, or cannot do it now.
        """
        if self._closed:
            raise Unavailable("the memory database is closed")
        write = _Write(unit, self._limits.request_s)
        self._queue.put(write)
        done = asyncio.wrap_future(write.future)
        await asyncio.wait([done], timeout=self._limits.request_s)
        if not done.done() and not write.has_begun and done.cancel():
            raise Unavailable("the memory database did not come to the write in time", self._condition)
        return cast(T, await done)

    async def read(self, query: Callable[[Connection], T]) -> T:
        """The result of `query` over one snapshot. Raises Unavailable when the database cannot be reached."""
        if self._closed:
            raise Unavailable("the memory database is closed")
        answer = asyncio.get_running_loop().run_in_executor(self._readers, self._query, query)
        if self.is_sqlite:
            return await answer
        try:
            async with asyncio.timeout(self._limits.request_s):
                return await answer
        except TimeoutError as error:
            raise Unavailable("the memory database did not answer in time", Condition.AWAY) from error

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
            return self._query_once(query)
        except DBAPIError as error:
            if condition_of(error) is not Condition.AWAY:
                raise _unavailable("cannot be read", error) from error
        # The server went away and may be back: a query changes nothing, so it may be asked again.
        try:
            return self._query_once(query)
        except DBAPIError as error:
            raise _unavailable("cannot be read", error) from error

    def _query_once(self, query: Callable[[Connection], T]) -> T:
        connection = getattr(self._local, "connection", None)
        if connection is None or connection.closed or connection.invalidated:
            connection = self._local.connection = self._read_engine.connect()
            self._opened.append(connection)
        # A rollback, never a commit: it ends the snapshot, so that the log can be checkpointed.
        with connection.begin() as transaction:
            result = query(connection)
            transaction.rollback()
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
            write.has_begun = True
            if not write.future.cancelled():
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
            connection = self._connected(connection, batch)
            with connection.begin():
                for write in batch:
                    _apply(connection, write)
        except Exception as error:
            self._condition = condition_of(error) or self._condition
            return self._each_alone(_given_up(connection), batch, error)
        self._condition = None
        return connection

    def _each_alone(self, connection: Connection | None, batch: list[_Write], error: Exception) -> Connection | None:
        failed: Exception | None = error if len(batch) == 1 else None
        for write in batch:
            write.result = write.error = None
            if failed is not None and condition_of(failed) is Condition.AWAY and time.monotonic() > write.deadline:
                # Each attempt would wait for the same database, and the last of them for all of the others.
                write.error = _refusal(failed)
                continue
            connection, failed = self._retry(connection, write, failed)
        return connection

    def _retry(
        self, connection: Connection | None, write: _Write, error: Exception | None
    ) -> tuple[Connection | None, Exception | None]:
        """Try the write alone, again where that may help; the connection, and what it failed with."""
        for _ in range(CONFLICT_ATTEMPT_MAX):
            if error is not None and not _is_worth_another(error, write):
                break
            try:
                connection = self._connected(connection, [write])
                with connection.begin():
                    write.result, write.error = write.unit(connection), None
            except Exception as again:
                connection, error = _given_up(connection), again
                self._condition = condition_of(again) or self._condition
            else:
                self._condition = None
                return connection, None
        if error is not None:
            write.error = _refusal(error)
        return connection, error

    def _connected(self, connection: Connection | None, batch: list[_Write]) -> Connection:
        connection = connection or self._write_engine.connect()
        until = None
        if self._condition is Condition.AWAY:
            # A unit may be long while the database is well; of one that has just failed no wait is long.
            until = max(min(write.deadline for write in batch), time.monotonic() + ATTEMPT_S_MIN)
        allow_until(connection.connection.driver_connection, until)
        return connection


def _apply(connection: Connection, write: _Write) -> None:
    try:
        with connection.begin_nested():
            write.result = write.unit(connection)
    except DBAPIError:
        raise
    except Exception as error:
        write.error = error


def _is_worth_another(error: Exception, write: _Write) -> bool:
    """Whether the same write may succeed at once: it met another one, or another connection may get through."""
    if isinstance(error, IntegrityError):
        return True
    if condition_of(error) not in _PASSING:
        return False
    return time.monotonic() < write.deadline


def _refusal(error: Exception) -> Exception:
    """The driver's error as callers see it."""
    if isinstance(error, DBAPIError) and not isinstance(error, IntegrityError):
        return _unavailable("did not take the write", error)
    return error


def _unavailable(what: str, error: DBAPIError) -> Unavailable:
    """The refusal for an error of the driver. A table that is missing, before the migration, has no condition."""
    condition = condition_of(error)
    said = what if condition is None else condition.sentence
    refusal = Unavailable(f"the memory database {said}", condition)
    refusal.__cause__ = error
    return refusal


def _given_up(connection: Connection | None) -> Connection | None:
    """A connection whose transaction failed is not used again."""
    if connection is not None:
        connection.invalidate()
        connection.close()
    return None
