"""Readers with snapshots: each query runs on a connection of its own thread, and leaves nothing open."""

import asyncio
import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeVar, cast

import psycopg
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from threadmark.db.conditions import Condition, condition_of
from threadmark.db.errors import DatabaseAway
from threadmark.db.execution.pools import Abandoned, Pool, check_wanted, interrupted_by, is_wanted
from threadmark.db.outage import away, is_away, is_passing

__all__ = ["SnapshotReader"]

#: How long cancelling a PostgreSQL statement may take (seconds).
CANCEL_S = 2.0
#: After so many steps of its virtual machine, about a millisecond, SQLite asks whether its statement is still wanted.
PROGRESS_STEP_COUNT = 100_000
T = TypeVar("T")
_LOG = logging.getLogger("threadmark.db")


class SnapshotReader:
    """Reads on up to `reader_count` connections of `engine`; `database` names it in errors and `name` its threads.

    A query that failed because its connection broke is tried again, unless `wait_s` is half over.
    """

    def __init__(self, engine: Engine, name: str, *, reader_count: int, wait_s: float, database: str) -> None:
        self._engine = engine
        self._wait_s = wait_s
        self._is_sqlite = engine.dialect.name == "sqlite"
        self._away = partial(away, database=database)
        self._database = database
        # One reader is reserved for turns, sweeps and key look-ups, so that tenants' requests never delay them.
        reserved = 1 if reader_count > 1 else 0
        self._readers = Pool(name, reader_count, reserved=reserved, limited=True)
        self._local = threading.local()
        self._opened: set[Connection] = set()
        self.read_count = 0
        self._is_reading_in_vain = False

    async def read(self, query: Callable[[Connection], T]) -> T:
        """The result of `query` over one snapshot; tenants take turns (see `Pool`).

        Raises DatabaseAway, or TookTooLong for a request that has exceeded its time limit. When the caller is
        cancelled, its query is cancelled too, also on the server.
        """
        self.read_count += 1
        if self._is_sqlite:
            return await self._readers.run(lambda: self._query(query))
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as limit:

                def give_up() -> None:
                    # Otherwise readers blocked on a hung server would keep other readers waiting.
                    if self._is_reading_in_vain:
                        limit.reschedule(loop.time())

                watching = loop.call_later(self._wait_s, give_up)
                try:
                    return await self._readers.run(lambda: self._query(query))
                finally:
                    watching.cancel()
        except TimeoutError as error:
            raise DatabaseAway(database=self._database) from error

    def shutdown(self) -> None:
        """End the threads when their queries are done, and close the connections. Blocks."""
        self._readers.shutdown()
        for connection in self._opened:
            connection.close()

    def _connect(self) -> Connection:
        connection = self._engine.connect()
        if self._is_sqlite:
            # Not `interrupt` of the connection: it stops the statement that runs, and one that begins a moment later,
            # for a caller that is gone, would run to its end.
            driver = cast(sqlite3.Connection, connection.connection.dbapi_connection)
            driver.set_progress_handler(_is_unwanted, PROGRESS_STEP_COUNT)
        return connection

    def _query(self, query: Callable[[Connection], T]) -> T:
        began = time.monotonic()
        try:
            return self._query_once(query)
        except DBAPIError as error:
            # An abandoned statement is interrupted and fails with an error of the driver.
            check_wanted()
            if condition_of(error) is None:
                raise
            if not is_passing(error) or time.monotonic() - began > self._wait_s / 2:
                raise self._away(error) from error
        # The connection broke, and the server may be back: a query changes nothing, so it can be retried.
        try:
            return self._query_once(query)
        except DBAPIError as error:
            if condition_of(error) is None:
                raise
            raise self._away(error) from error

    def _query_once(self, query: Callable[[Connection], T]) -> T:
        connection = getattr(self._local, "connection", None)
        # Roll back instead of committing: both end the snapshot, so that old row versions can be cleaned up.
        try:
            if connection is None or connection.closed:
                connection = self._local.connection = self._connect()
                self._opened.add(connection)
            cancel = partial(_cancel, connection.connection.dbapi_connection)
            # SQLite asks while it works (see `_connect`); PostgreSQL needs a request to cancel.
            cancelled = nullcontext() if self._is_sqlite else interrupted_by(cancel, blocks=True)
            with connection.begin() as transaction, cancelled:
                result = query(connection)
                transaction.rollback()
            # A late cancellation may still be on its way and would hit the connection's next statement.
            check_wanted()
            self._is_reading_in_vain = False
        except (Abandoned, DBAPIError) as error:
            if is_away(error):
                self._is_reading_in_vain = True
            if connection is not None and (is_away(error) or _is_stopped(error)):
                if not is_away(error):
                    # SQLite keeps interrupting every new statement, even ROLLBACK, until the interrupted one is closed.
                    connection.invalidate()
                connection.close()
                self._opened.discard(connection)
            raise
        return result


def _is_unwanted() -> bool:
    return not is_wanted()


def _is_stopped(error: BaseException) -> bool:
    return isinstance(error, Abandoned) or condition_of(error) is Condition.QUERY_CANCELLED


def _cancel(connection: Any) -> None:
    """Cancel the statement that runs on this connection, on the server. Blocks for up to CANCEL_S."""
    try:
        connection.cancel_safe(timeout=CANCEL_S)
    except psycopg.Error:
        # If the server is unreachable, the statement's own timeout ends it.
        _LOG.debug("an abandoned statement could not be cancelled", exc_info=True)
