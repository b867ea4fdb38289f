"""The lock of a thread in the hands of a test: requests are in flight, and none of them can decide anything yet."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import Connection, Engine, select, text

from tests.conformance.store import Store
from tests.support.waiting import wait_until
from threadmark.state import open_engine, tables

__all__ = ["HeldLock", "hold_thread"]

_WAITING = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")


class HeldLock:
    """The row lock of a thread on PostgreSQL, the write lock of the database on SQLite."""

    def __init__(self, engine: Engine, connection: Connection) -> None:
        self._engine = engine
        self._connection = connection

    async def blocks(self, count: int) -> None:
        """Return when so many units wait for the row; on SQLite a unit begins by waiting, so nothing is read before."""
        if self._engine.dialect.name == "sqlite":
            return

        async def waiting() -> bool:
            with self._engine.connect() as observer:
                return int(observer.execute(_WAITING).scalar_one()) >= count

        await wait_until(waiting, description=f"{count} units to wait for the row of the thread")

    def release(self) -> None:
        """Release the waiting callers."""
        self._connection.rollback()


@asynccontextmanager
async def hold_thread(store: Store, thread: int) -> AsyncIterator[HeldLock]:
    """Hold the lock of a thread until it is released."""
    engine = open_engine(store.url, write=True)
    connection = engine.connect()
    try:
        connection.execute(select(tables.thread.c.number).where(tables.thread.c.number == thread).with_for_update())
        yield HeldLock(engine, connection)
    finally:
        connection.close()
        engine.dispose()
