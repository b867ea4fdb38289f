"""Reads of the memory database: tenants take turns, and a read that nobody waits for is stopped."""

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text

from tests.support.memory_house import HOME, NOW, draft, house
from tests.support.waiting import wait_until
from threadmark.db.execution.pools import act_for, is_wanted
from threadmark.memory.exports import archive
from threadmark.memory.exports.spooled_lines import SpooledLines
from threadmark.memory.pools import EXPORTS
from threadmark.memory.store.database import READER_COUNT, Database
from threadmark.memory.store.statements import rows

ENDLESS = text("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n")


def one(connection: Connection) -> int:
    """A small read."""
    return int(connection.execute(text("SELECT 1")).scalar_one())


async def test_a_tenants_long_reads_leave_room_for_the_read_of_another(tmp_path: Path) -> None:
    """However many it has asked for: one recall of another tenant does not wait for their end."""
    database = Database.open(f"sqlite:///{tmp_path / 'memory.db'}")
    may_end = threading.Event()

    async def read_long() -> None:
        act_for("large")
        await database.read(lambda _: may_end.wait(60))

    async def read_small() -> int:
        act_for("small")
        return await database.read(one)

    long_reads = [asyncio.create_task(read_long()) for _ in range(READER_COUNT * 3)]
    await asyncio.sleep(0)  # they are queued
    try:
        async with asyncio.timeout(30):
            assert await asyncio.create_task(read_small()) == 1
        assert not any(each.done() for each in long_reads)
    finally:
        may_end.set()
        await asyncio.gather(*long_reads)
        await database.close()


@pytest.mark.parametrize("is_early", [False, True], ids=["in its statement", "before its statement"])
async def test_a_read_that_nobody_waits_for_is_stopped_in_its_statement(tmp_path: Path, is_early: bool) -> None:
    """Also where the statement begins after its caller has gone. Closing waits for readers, so it shows the end."""
    database = Database.open(f"sqlite:///{tmp_path / 'memory.db'}")
    has_begun = threading.Event()

    def never_ends(connection: Connection) -> None:
        has_begun.set()
        while is_early and is_wanted():
            time.sleep(0.001)
        connection.execute(ENDLESS)

    reading = asyncio.create_task(database.read(never_ends))
    await asyncio.to_thread(has_begun.wait, 30)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading

    assert await database.read(one) == 1
    async with asyncio.timeout(30):
        await database.close()


async def test_an_export_that_its_client_gave_up_ends_at_the_next_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would hold its thread for as long as a whole export takes."""
    pages: list[str] = []
    has_begun, may_go_on = threading.Event(), threading.Event()

    def slow_rows(connection: Connection, query: Any) -> list[dict[str, Any]]:
        pages.append(str(query))
        has_begun.set()
        may_go_on.wait(60)
        return rows(connection, query)

    async with house(f"sqlite:///{tmp_path / 'memory.db'}") as memory:
        await memory.remember([draft("likes tea"), draft("likes mate")], scope=HOME, now=NOW)
        monkeypatch.setattr(archive, "rows", slow_rows)
        with SpooledLines() as spool:
            exporting = asyncio.create_task(memory.export_to(spool, scope=HOME))
            await asyncio.to_thread(has_begun.wait, 30)
            exporting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await exporting
            may_go_on.set()
            await wait_until(lambda: not EXPORTS._running.total(), description="the export's thread to be free")

    assert len(pages) == 1
