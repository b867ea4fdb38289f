"""A read that nobody waits for is stopped, and the stop meets no other read."""

import asyncio
import threading
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from threadmark.state.database import Database
from threadmark.state.pools import check_wanted

ENDLESS = text("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n WHERE x % 1000 = 0")


async def test_the_next_read_is_not_stopped_with_an_abandoned_one(tmp_path: Path) -> None:
    """SQLite stops whatever begins while a statement that was told to stop has not been closed."""
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
