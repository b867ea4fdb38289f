"""A database: writer threads with group commit, and readers that see snapshots."""

import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar, cast

from sqlalchemy import Connection, Engine, make_url
from sqlalchemy.exc import DBAPIError

from state.append import OVERTAKEN, Append, Appended, Outcome
from state.engine import is_sqlite, normal_url, open_engine
from state.errors import DatabaseAway, Overtaken
from state.outage import is_away
from state.pools import Pool, check_wanted, interrupted_by
from state.writer import Writer

__all__ = ["READER_COUNT", "TURN_READER_COUNT", "Database"]

#: Reading connections of a process with requests to answer, and of one that only moves runs.
READER_COUNT = 4
TURN_READER_COUNT = 2
#: How long a request waits for one read, with its turn among other tenants' (seconds).
READ_LIMIT_S = 30.0
#: Writing connections: SQLite has one writer; on PostgreSQL what holders of threads write does not wait behind what
#: comes from everywhere else, and their batches are as large as can be.
POSTGRESQL_WRITER_COUNT = 2
T = TypeVar("T")


class Database:
    """Runs units of work (plain functions over a Connection) outside the event loop.

    No connection is ever held while a tool or a model runs, and none is checked out by a task that can be cancelled.
    """

    def __init__(self, write_engine: Engine, read_engine: Engine, *, writer_count: int, reader_count: int) -> None:
        self.url = write_engine.url
        self._write_engine = write_engine
        self._read_engine = read_engine
        self._writers = [Writer(write_engine, f"threadmark-writer-{number}") for number in range(writer_count)]
        self._reader_count = reader_count
        # One is kept for turns, sweeps and keys, which never wait for what tenants ask.
        reserved = 1 if reader_count > 1 else 0
        self._readers = Pool("threadmark-reader", reader_count, reserved=reserved, limit_s=READ_LIMIT_S)
        self._upkeep = Pool("threadmark-upkeep", 1)
        self._local = threading.local()
        self._opened: set[Connection] = set()
        self.read_count = 0

    @classmethod
    def open(cls, url: str, *, synchronous: str = "FULL", reader_count: int = READER_COUNT) -> "Database":
        """Open `url` (`sqlite:///path`, `postgresql://…`); tables are there already (see `state.migrate`)."""
        make_url(normal_url(url))
        return cls(
            open_engine(url, write=True, synchronous=synchronous),
            open_engine(url, write=False, synchronous=synchronous),
            writer_count=1 if is_sqlite(url) else POSTGRESQL_WRITER_COUNT,
            reader_count=reader_count,
        )

    @property
    def commit_count(self) -> int:
        """Commits so far: what the tests count."""
        return sum(writer.commit_count for writer in self._writers)

    @property
    def connection_count_max(self) -> int:
        """The most connections that this object holds at once."""
        return len(self._writers) + self._reader_count

    async def write(self, unit: Callable[[Connection], T], *, thread: int | None = None, repeatable: bool = False) -> T:
        """The result of `unit` after its commit; a unit that raises is undone alone.

        Writes for one `thread` (its number) are done in the order in which they were asked for. A `repeatable` unit
        does nothing the second time, so it is done again when a commit's answer was lost; another one raises
        OutcomeUnknown then. Raises DatabaseAway when the database stayed away for longer than writers wait.
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

        Raises DatabaseAway, or TookTooLong for a request that waited longer than READ_LIMIT_S. A caller that is
        cancelled stops its query.
        """
        self.read_count += 1
        return await self._readers.run(lambda: self._query(query))

    async def empty_log(self) -> None:
        """Bring SQLite's write-ahead log into the file and empty it, so that nothing erased is left in it."""
        if is_sqlite(str(self.url)):
            await self._upkeep.run(self._truncate_log)

    def hurry(self) -> None:
        """The process is about to end: from now on writes hardly wait for a database that is away."""
        for writer in self._writers:
            writer.hurry()

    async def close(self) -> None:
        """Commit what is queued and close every connection."""
        for writer in self._writers:
            await writer.close()
        await self._upkeep.run(self._readers.shutdown)
        self._upkeep.shutdown()
        for connection in self._opened:
            connection.close()
        self._write_engine.dispose()
        self._read_engine.dispose()

    def _truncate_log(self) -> None:
        with self._write_engine.connect() as connection:
            connection.connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").close()

    def _writer(self, thread: int | None) -> Writer:
        return self._writers[-1 if thread is None else 0]

    def _query(self, query: Callable[[Connection], T]) -> T:
        try:
            return self._query_once(query)
        except DBAPIError as error:
            # An abandoned statement is interrupted, and says so in an error of its own.
            check_wanted()
            if not is_away(error):
                raise
        # The server went away and may be back: a query changes nothing, so it may be asked again.
        try:
            return self._query_once(query)
        except DBAPIError as error:
            if is_away(error):
                raise DatabaseAway(str(error)) from error
            raise

    def _query_once(self, query: Callable[[Connection], T]) -> T:
        connection = getattr(self._local, "connection", None)
        if connection is None or connection.closed:
            connection = self._local.connection = self._read_engine.connect()
            self._opened.add(connection)
        # A rollback, never a commit: it ends the snapshot, so that old row versions can be cleaned away.
        try:
            with connection.begin() as transaction, interrupted_by(partial(_interrupt, connection)):
                result = query(connection)
                transaction.rollback()
        except DBAPIError as error:
            if is_away(error):
                connection.close()
                self._opened.discard(connection)
            raise
        return result


def _interrupt(connection: Connection) -> None:
    """Stop the statement that runs, from another thread. PostgreSQL's statements end by their own time-out."""
    if connection.dialect.name == "sqlite":
        cast(sqlite3.Connection, connection.connection.dbapi_connection).interrupt()
