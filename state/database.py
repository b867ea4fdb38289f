"""A database: writer threads with group commit, and readers that see snapshots."""

import asyncio
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import psycopg
from sqlalchemy import Connection, Engine, make_url
from sqlalchemy.exc import DBAPIError

from threadmark.db import DEFAULT_LIMITS, Condition, Limits, Purpose, condition_of
from threadmark.state.append.append_batch import OVERTAKEN, Append, Appended, Outcome
from threadmark.state.engine import is_sqlite, normal_url, open_engine
from threadmark.state.errors import DatabaseAway, Overtaken
from threadmark.state.outage import away, is_away, is_passing
from threadmark.state.pools import Abandoned, Pool, check_wanted, interrupted_by
from threadmark.state.writer import Writer

__all__ = ["READER_COUNT", "TURN_READER_COUNT", "Database"]

#: Reading connections of a process with requests to answer, and of one that only moves runs.
READER_COUNT = 4
TURN_READER_COUNT = 2
#: How long cancelling a statement of PostgreSQL may take (seconds).
CANCEL_S = 2.0
#: Writing connections: SQLite has one writer; on PostgreSQL what holders of threads write does not wait behind what
#: comes from everywhere else, and their batches are as large as can be.
WRITER_PURPOSES = (Purpose.TURN_WRITE, Purpose.WRITE)
T = TypeVar("T")
_LOG = logging.getLogger("threadmark.state")


class Database:
    """Runs units of work (plain functions over a Connection) outside the event loop.

    No connection is ever held while a tool or a model runs, and none is checked out by a task that can be cancelled.
    """

    def __init__(
        self,
        write_engines: Sequence[Engine],
        read_engine: Engine,
        *,
        reader_count: int,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.url = read_engine.url
        self._limits = limits
        self._is_sqlite = read_engine.dialect.name == "sqlite"
        self._write_engines = write_engines
        self._read_engine = read_engine
        self._writers = [
            Writer(engine, f"threadmark-writer-{number}", wait_s=limits.request_s)
            for number, engine in enumerate(write_engines)
        ]
        self._reader_count = reader_count
        # One is kept for turns, sweeps and keys, which never wait for what tenants ask.
        reserved = 1 if reader_count > 1 else 0
        self._readers = Pool("threadmark-reader", reader_count, reserved=reserved, limited=True)
        self._upkeep = Pool("threadmark-upkeep", 1)
        self._local = threading.local()
        self._opened: set[Connection] = set()
        self._is_closed = False
        self.read_count = 0
        self._is_reading_in_vain = False

    @classmethod
    def open(
        cls,
        url: str,
        *,
        synchronous: str = "FULL",
        reader_count: int = READER_COUNT,
        limits: Limits = DEFAULT_LIMITS,
    ) -> "Database":
        """Open `url` (`sqlite:///path`, `postgresql://…`); tables are there already (see
        `threadmark.state.migrate`).
        """
        make_url(normal_url(url))
        purposes = WRITER_PURPOSES[:1] if is_sqlite(url) else WRITER_PURPOSES
        return cls(
            [
                open_engine(url, write=True, synchronous=synchronous, limits=limits, purpose=purpose)
                for purpose in purposes
            ],
            open_engine(url, write=False, synchronous=synchronous, limits=limits),
            reader_count=reader_count,
            limits=limits,
        )

    @property
    def commit_count(self) -> int:
        """Commits so far: what the tests count."""
        return sum(writer.commit_count for writer in self._writers)

    @property
    def connection_count_max(self) -> int:
        """The most connections that this object holds at once."""
        return len(self._writers) + self._reader_count

    @property
    def condition(self) -> Condition | None:
        """What was the matter when a write that is no turn's failed last; None once one has succeeded."""
        return self._writer(None).condition

    @property
    def turns_stalled_s(self) -> float:
        """For how long nothing could be written for turns (seconds); 0 on SQLite, where writes wait for neighbours."""
        return 0.0 if self._is_sqlite else self._writers[0].stalled_s

    async def write(self, unit: Callable[[Connection], T], *, thread: int | None = None, repeatable: bool = False) -> T:
        """The result of `unit` after its commit; a unit that raises is undone alone.

        Writes for one `thread` (its number) are done in the order in which they were asked for. A `repeatable` unit
        does nothing the second time, so it is done again when a commit's answer was lost; another one raises
        OutcomeUnknown then. Raises DatabaseAway when the database stayed away for longer than writers wait, or
        cannot do it now.
        """
        return cast(T, await self._writer(thread).submit(unit, thread=thread, repeatable=repeatable))

    async def append(self, append: Append) -> int | None:
        """The thread's inbox counter after the append is on disk; None if the fence or the head had moved.

        Raises Overtaken if the run that was to end with it has to roll back; nothing was written then.
        """
        outcome: Outcome = await self._writer(append.thread).submit(append, repeatable=bool(append.rows))
        if outcome == OVERTAKEN and append.end is not None:
            raise Overtaken(append.end.run)
        return outcome.inbox if isinstance(outcome, Appended) else None

    async def read(self, query: Callable[[Connection], T]) -> T:
        """The result of `query` over one snapshot; tenants take turns (see `Pool`).

        Raises DatabaseAway, or TookTooLong for a request that has waited for longer than it may. A caller that is
        cancelled stops its query, on the server too.
        """
        self.read_count += 1
        if self._is_sqlite:
            return await self._readers.run(lambda: self._query(query))
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as limit:

                def give_up() -> None:
                    # Readers that wait for a server that hangs let others wait behind them.
                    if self._is_reading_in_vain:
                        limit.reschedule(loop.time())

                watching = loop.call_later(self._limits.request_s, give_up)
                try:
                    return await self._readers.run(lambda: self._query(query))
                finally:
                    watching.cancel()
        except TimeoutError as error:
            raise DatabaseAway from error

    async def empty_log(self) -> None:
        """Bring SQLite's write-ahead log into the file and empty it, so that nothing erased is left in it."""
        if self._is_sqlite:
            await self._upkeep.run(self._truncate_log)

    def hurry(self) -> None:
        """The process is about to end: from now on writes hardly wait for a database that is away."""
        for writer in self._writers:
            writer.hurry()

    async def close(self) -> None:
        """Commit what is queued and close every connection. Closing again changes nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        for writer in self._writers:
            await writer.close()
        await self._upkeep.run(self._readers.shutdown)
        self._upkeep.shutdown()
        for connection in self._opened:
            connection.close()
        for engine in (*self._write_engines, self._read_engine):
            engine.dispose()

    def _truncate_log(self) -> None:
        with self._write_engines[0].connect() as connection:
            connection.connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").close()

    def _writer(self, thread: int | None) -> Writer:
        return self._writers[-1 if thread is None else 0]

    def _query(self, query: Callable[[Connection], T]) -> T:
        began = time.monotonic()
        try:
            return self._query_once(query)
        except DBAPIError as error:
            # An abandoned statement is interrupted, and says so in an error of its own.
            check_wanted()
            if condition_of(error) is None:
                raise
            if not is_passing(error) or time.monotonic() - began > self._limits.request_s / 2:
                raise away(error) from error
        # The server went away and may be back: a query changes nothing, so it may be asked again.
        try:
            return self._query_once(query)
        except DBAPIError as error:
            if condition_of(error) is None:
                raise
            raise away(error) from error

    def _query_once(self, query: Callable[[Connection], T]) -> T:
        connection = getattr(self._local, "connection", None)
        # A rollback, never a commit: it ends the snapshot, so that old row versions can be cleaned away.
        try:
            if connection is None or connection.closed:
                connection = self._local.connection = self._read_engine.connect()
                self._opened.add(connection)
            driver = connection.connection.dbapi_connection
            interrupt: Callable[[], None] = (
                cast(sqlite3.Connection, driver).interrupt if self._is_sqlite else partial(_cancel, driver)
            )
            with connection.begin() as transaction, interrupted_by(interrupt, blocks=not self._is_sqlite):
                result = query(connection)
                transaction.rollback()
            # A cancellation that came too late may still be on its way, and would meet what comes next.
            check_wanted()
            self._is_reading_in_vain = False
        except (Abandoned, DBAPIError) as error:
            if is_away(error):
                self._is_reading_in_vain = True
            if connection is not None and (is_away(error) or _is_stopped(error)):
                if not is_away(error):
                    # SQLite goes on stopping all that begins, a ROLLBACK too, until the stopped statement is closed.
                    connection.invalidate()
                connection.close()
                self._opened.discard(connection)
            raise
        return result


def _is_stopped(error: BaseException) -> bool:
    return isinstance(error, Abandoned) or condition_of(error) is Condition.QUERY_CANCELLED


def _cancel(connection: Any) -> None:
    """Have the server stop the statement that runs on this connection. Blocks, for CANCEL_S at most."""
    try:
        connection.cancel_safe(timeout=CANCEL_S)
    except psycopg.Error:
        # A server that is not reached ends it by the statement's own time-out.
        _LOG.debug("a statement that nobody waits for was not cancelled", exc_info=True)
