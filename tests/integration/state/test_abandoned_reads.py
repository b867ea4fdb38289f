"""A read without a waiting caller is stopped, and the stop hits no other read."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

from tests.support.abandoned_work import HeldSteps
from tests.support.waiting import wait_until
from threadmark.db.execution.pools import check_wanted
from threadmark.state.database import Database

ENDLESS = text("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n WHERE x % 1000 = 0")


async def test_the_next_read_is_not_stopped_with_an_abandoned_one(tmp_path: Path) -> None:
    """SQLite stops any statement that begins while an interrupted one has not been closed."""
    database = Database.open(f"sqlite:///{tmp_path}/state.db", reader_count=1)
    kept: list[object] = []

    for _ in range(20):
        has_begun = threading.Event()

        def never_ends(connection: Connection, has_begun: threading.Event = has_begun) -> None:
            rows = connection.execute(ENDLESS)
            kept.append(rows)
            has_begun.set()
            while True:
                check_wanted()

        reading = asyncio.create_task(database.read(never_ends))
        await asyncio.to_thread(has_begun.wait, 30)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

        assert await database.read(lambda connection: connection.execute(text("SELECT 1")).scalar_one()) == 1

    await database.close()


async def _read_abandoned(database: Database, query: Callable[[Connection], object], steps: HeldSteps) -> None:
    """Begin a read, and leave it where `steps` holds it. Its thread then goes on."""
    reading = asyncio.create_task(database.read(query))
    await wait_until(steps.is_held.is_set, description="the read to begin", timeout_s=30)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    steps.release()


async def test_an_abandoned_read_whose_connection_broke_is_not_retried(tmp_path: Path) -> None:
    """A server that was restarted has enough to do without the queries of callers that are gone."""
    database = Database.open(f"sqlite:///{tmp_path}/state.db", reader_count=1)
    steps = HeldSteps(nth=1)

    def breaks(_: Connection) -> None:
        steps.take()
        raise OperationalError("SELECT 1", None, psycopg.OperationalError("the connection is lost"))

    await _read_abandoned(database, breaks, steps)
    await database.close()  # waits for the reader

    assert steps.count == 1


async def test_the_connection_of_an_abandoned_read_is_not_used_again(tmp_path: Path) -> None:
    """A cancellation that is still on its way would hit the next statement on it."""
    database = Database.open(f"sqlite:///{tmp_path}/state.db", reader_count=1)
    steps = HeldSteps(nth=1)
    used: list[object] = []

    def note(connection: Connection) -> None:
        used.append(connection.connection.dbapi_connection)
        steps.take()

    await _read_abandoned(database, note, steps)
    await database.read(note)
    await database.read(note)
    await database.close()

    assert used[0] is not used[1]
    assert used[1] is used[2]
