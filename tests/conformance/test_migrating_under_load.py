"""Migrating while threads are written: nothing is lost, nobody waits long, a blocked migration changes nothing."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, text

from tests.conformance.store import ROUTES, Store
from tests.support.factories import replied
from tests.support.waiting import wait_until
from threadmark import compaction
from threadmark.db import lock_retry
from threadmark.state import (
    Claim,
    JournalWriter,
    MigrationBlocked,
    Thread,
    current_revision,
    head_revision,
    migrate,
    open_engine,
    schema_gap,
)
from threadmark.state.migrations import VERSION_TABLE
from threadmark.state.runs import claim_statements
from threadmark.workers.schema_wait import revision_gaps

BEFORE, AFTER = "0001", "0002"
ROUND_COUNT = 5
NEWER = f"UPDATE {VERSION_TABLE} SET version_num = '9999'"
HOLD_WORKER = "SELECT count(*) FROM worker"


async def append_until(store: Store, begun: tuple[Claim, JournalWriter], done: asyncio.Event) -> tuple[Thread, int]:
    """Append, and look for work, without a pause; the thread, and how many of its entries were acknowledged."""
    claimed, writer = begun
    count = 2
    while not done.is_set():
        await store.put(writer, replied(ordinal=count))
        assert await store.write(look_for_work) == []
        count += 1
    return claimed.thread, count


def look_for_work(connection: Connection) -> list[Any]:
    """What a claim locks while it looks. The claim itself names columns that the older of the two schemas does not have
    yet: a process whose schema is behind its code does not start.
    """
    wanted = {"routes": list(ROUTES), "count_max": 100, "with_suspects": True}
    looks = (claim_statements.ORPHANS, claim_statements.DUE)
    return [row for look in looks for row in look.all(connection, wanted)]


async def test_migrating_under_load_loses_nothing(store: Store, state_url: str) -> None:
    """Down a revision and up again, while four threads are written: each entry is there, and verifies."""
    engine, done = open_engine(state_url, write=True), asyncio.Event()
    begun = [await store.begun("hello") for _ in range(4)]
    writers = [asyncio.create_task(append_until(store, each, done)) for each in begun]
    try:
        for _ in range(ROUND_COUNT):
            await asyncio.to_thread(migrate, engine, BEFORE)
            await asyncio.to_thread(migrate, engine)
    finally:
        done.set()
        written = await asyncio.gather(*writers)
        at = current_revision(engine)
        engine.dispose()

    assert at == head_revision()
    for thread, count in written:
        assert len(await store.entries(thread.number)) == count
        assert await store.journal.verify(await store.seen(thread)) == []
    assert all(count > 2 for _, count in written)


@pytest.fixture
def held(postgresql_state_url: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Engine, Engine]:
    """An engine to migrate with, and one to hold a lock with; the pauses between attempts are short."""
    monkeypatch.setattr(lock_retry, "PAUSE_S", 0.01)
    return open_engine(postgresql_state_url, write=True), open_engine(postgresql_state_url, write=True)


async def test_a_migration_waits_for_a_lock_in_short_turns_and_lets_others_through(
    held: tuple[Engine, Engine], caplog: pytest.LogCaptureFixture
) -> None:
    """While an old transaction holds the table, others still use it; when that one ends the migration is done."""
    engine, other = held
    with other.connect() as holder, engine.connect() as worker:
        holder.execute(text(HOLD_WORKER))
        migrating = asyncio.create_task(asyncio.to_thread(migrate, other, BEFORE))
        await wait_until(lambda: len(caplog.messages) > 2, description="the migration to be held up", timeout_s=30)
        assert not migrating.done()
        assert worker.execute(text(HOLD_WORKER)).scalar_one() == 0
        worker.rollback()
        holder.rollback()
        await migrating
    assert current_revision(engine) == BEFORE
    engine.dispose()
    other.dispose()


def test_a_migration_that_stays_blocked_says_why_and_changes_nothing(
    held: tuple[Engine, Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its attempts it ends with a sentence; it can be run again."""
    engine, other = held
    monkeypatch.setattr(lock_retry, "ATTEMPT_MAX", 2)
    migrate(engine, AFTER)
    with other.connect() as holder:
        holder.execute(text(HOLD_WORKER))
        with pytest.raises(MigrationBlocked, match="no step is half done, run it again"):
            migrate(engine, BEFORE)
        holder.rollback()
    assert current_revision(engine) == AFTER
    migrate(engine, BEFORE)
    assert current_revision(engine) == BEFORE
    engine.dispose()
    other.dispose()


def test_a_schema_that_a_newer_version_brought_is_gone_on_with(state_url: str) -> None:
    """A process of the version before, started again in the middle of a deploy, neither waits nor changes anything."""
    engine = open_engine(state_url, write=True)
    migrate(engine)
    with engine.begin() as connection:
        connection.execute(text(NEWER))

    migrate(engine)

    assert current_revision(engine) == "9999"
    assert schema_gap(engine) is None
    assert revision_gaps(engine) == ["compaction has no tables yet, needed is " + compaction.head_revision()]
    engine.dispose()


async def test_two_that_migrate_at_once_do_it_once(postgres_url: str) -> None:
    """Two replicas whose start migrates: one does, the other finds it done."""
    engines = [open_engine(postgres_url, write=True) for _ in range(3)]

    await asyncio.gather(*(asyncio.to_thread(migrate, engine) for engine in engines))

    assert {current_revision(engine) for engine in engines} == {head_revision()}
    for engine in engines:
        engine.dispose()
