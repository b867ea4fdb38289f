"""An import and sources that are kept apart here: what it brings from them is not believed before it is let back."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from tests.support.memory_house import NOW, draft, house, moment
from tests.support.staged_imports import TENANT, exported_elsewhere
from tests.support.waiting import wait_until
from threadmark.memory import Origin, Recollection, Selector, Which
from threadmark.memory.write.quarantine import hold_source

SOURCE = Selector(actor="Mallory")
_WAITING = text(
    "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database"
    " WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()"
)


@pytest.fixture(params=["sqlite", "postgresql"])
async def memory(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Recollection]:
    """Both databases."""
    url = f"sqlite:///{tmp_path}/memory.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    async with house(url) as opened:
        yield opened


async def listed(memory: Recollection, which: Which = Which.CURRENT) -> list[str]:
    """The texts of what is believed, or of what waits."""
    return [each.text for _, each in await memory.list(scope=TENANT, which=which)]


async def from_both(folder: Path) -> list[str]:
    """An export with a statement of Mallory and one of another thread."""
    mallory = draft("likes tea", origin=Origin(actor="Mallory"))
    return await exported_elsewhere(folder, mallory, draft("likes cake", origin=moment(1)))


async def test_what_comes_from_a_source_that_is_kept_apart_waits_too(memory: Recollection, tmp_path: Path) -> None:
    """It is imported, listed as quarantined, found by no question, and comes back when its source does."""
    held, _ = await memory.quarantine(SOURCE, tenant_id="acme", reason="odd", now=NOW)

    await memory.import_(await from_both(tmp_path), scope=TENANT)

    assert await listed(memory) == ["likes cake"]
    assert await listed(memory, Which.QUARANTINED) == ["likes tea"]
    assert await memory.release(held, tenant_id="acme", now=NOW) == 1
    assert await listed(memory) == ["likes tea", "likes cake"]


async def test_an_import_waits_for_a_source_that_is_just_being_kept_apart(postgres_url: str, tmp_path: Path) -> None:
    """The other server has not committed yet: the import is published after it, and knows of it."""
    lines = await from_both(tmp_path)
    async with house(postgres_url) as first, house(postgres_url) as second:
        go_on, has_begun = threading.Event(), threading.Event()

        def slowly(connection: Connection) -> None:
            hold_source(connection, "acme", SOURCE, "odd", 1)
            has_begun.set()
            assert go_on.wait(60)

        holding = asyncio.ensure_future(first._database.write(slowly))
        assert await asyncio.to_thread(has_begun.wait, 30)
        importing = asyncio.ensure_future(second.import_(lines, scope=TENANT))

        async def waits() -> bool:
            return bool(await first._database.read(lambda connection: connection.scalar(_WAITING)))

        try:
            await wait_until(waits, description="the import to wait for the lock", timeout_s=30)
            assert await listed(first) == []
        finally:
            go_on.set()
            await asyncio.gather(holding, importing)

        assert await listed(first) == ["likes cake"]
        assert await listed(first, Which.QUARANTINED) == ["likes tea"]
