"""What streams is never ahead of the journal: a flash waits until the entry that it follows is on disk."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.store import WORKER, Store
from tests.support.factories import TENANT
from threadmark.state import JournalWriter, LeaseLost, TurnStarted, migrate, open_engine
from threadmark.workers.feeds.local_feed import LocalFeed
from threadmark.workers.turn.turn_journal import TurnJournal


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """A fresh database."""
    engine = open_engine(f"sqlite:///{tmp_path}/state.db", write=True)
    migrate(engine)
    engine.dispose()
    store = Store.open(f"sqlite:///{tmp_path}/state.db")
    yield store
    await store.database.close()


async def a_turn(store: Store, feed: LocalFeed) -> TurnJournal:
    """One side of a journal that a worker holds."""
    await store.register()
    run = await store.accept("hello")
    (claim,) = await store.claim()
    assert claim.run.run_id == run.run_id
    return TurnJournal(
        claim,
        await store.journal.fold(claim.thread),
        JournalWriter(store.database, claim.thread, run=claim.run.number, now_us=store.now_us),
        feed=feed,
        fold_cache=store.journal.fold_cache,
        task_signal=asyncio.Event(),
        tracer=None,
    )


def shown(feed: LocalFeed, journal: TurnJournal, after_seq: int) -> list[Any]:
    """The data of what readers see after an entry."""
    known = feed.known((TENANT, journal._claim.run.run_id))
    return [] if known is None else [flash.data for flash in known.after(after_seq, 0)]


async def test_a_flash_waits_for_the_entry_before_it(store: Store) -> None:
    """Before the commit nobody sees it, after it everybody does, in order."""
    feed = LocalFeed()
    journal = await a_turn(store, feed)
    journal.stage(TurnStarted(worker_id=WORKER, attempt=1))
    journal.emit("first")
    journal.delta("second", "msg-1")
    assert shown(feed, journal, 1) == []

    await journal.flush()

    assert shown(feed, journal, 1) == ["first", "second"]
    journal.emit("third")
    assert shown(feed, journal, 1) == ["first", "second", "third"]


async def test_an_overtaken_turn_shows_nothing_more(store: Store) -> None:
    """Its entry never came to be: a flash after it would stand in a gap of its successor's."""
    feed = LocalFeed()
    journal = await a_turn(store, feed)
    journal.stage(TurnStarted(worker_id=WORKER, attempt=1))
    journal.emit("from the grave")
    await store.bury_all()
    await store.register("worker-2")
    await store.claim(worker_id="worker-2")

    with pytest.raises(LeaseLost):
        await journal.flush()

    assert shown(feed, journal, 1) == []
