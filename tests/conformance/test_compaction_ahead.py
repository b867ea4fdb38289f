"""Ledgers are written in batches before their compaction is committed: nobody sees them, and none is left behind."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, func, select, update

from tests.conformance.compacting import Compacting, compacting, compaction_engine
from tests.conformance.store import real_now_us
from tests.support.factories import TENANT
from threadmark.compaction import Compaction, CompactionStatus, DropFilter, DropQuery, tables
from threadmark.compaction.run import ahead, compaction_run
from threadmark.compaction.run.commit import Commit
from threadmark.compaction.store import rows_ahead
from threadmark.compaction.store.holds import hold
from threadmark.state import NotFound, expire, register

__all__ = ["compacting", "compaction_engine"]

BATCH = 10
#: What a commit writes beside a batch: the view and its pointer, the segment, statuses, tasks, an entry of the journal.
BESIDE = 20
ANYTHING = DropFilter(statuses=())


class DiskGoneError(Exception):
    """What a commit fails with."""


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches so small that a short thread needs several."""
    assert rows_ahead.BATCH_COUNT <= 500
    assert ahead.ANALYSIS_COUNT <= 500
    monkeypatch.setattr(rows_ahead, "BATCH_COUNT", BATCH)
    monkeypatch.setattr(ahead, "ANALYSIS_COUNT", BATCH)


@contextmanager
def commits() -> Iterator[list[int]]:
    """How many rows each commit writes meanwhile."""
    done, rows = [], {"count": 0}

    def count(_: Any, cursor: Any, statement: str, *__: Any) -> None:
        if statement.lstrip().split(None, 1)[0].upper() in ("INSERT", "UPDATE", "DELETE"):
            rows["count"] += max(cursor.rowcount, 0)

    def commit(_: Connection) -> None:
        done.append(rows["count"])
        rows["count"] = 0

    def executed(connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> None:
        count(connection, cursor, statement, parameters, context, many)

    event.listen(Engine, "after_cursor_execute", executed)
    event.listen(Engine, "commit", commit)
    try:
        yield done
    finally:
        event.remove(Engine, "after_cursor_execute", executed)
        event.remove(Engine, "commit", commit)


async def count_rows(work: Compacting) -> int:
    """Rows of all ledgers, read by anybody or not."""
    return int(
        await work.store.read(
            lambda connection: connection.execute(select(func.count()).select_from(tables.ledger_row)).scalar_one()
        )
    )


async def broken_off(work: Compacting, monkeypatch: pytest.MonkeyPatch) -> Compaction:
    """A compaction whose rows are all there, and whose commit failed."""

    def refuse(_: Connection, done: Commit) -> Compaction:
        raise DiskGoneError(done.compaction.compaction_id)

    ordered, _ = await work.service.compactions.begin(TENANT, "thread-1", work.order())
    with monkeypatch.context() as patched:
        patched.setattr(compaction_run, "commit_compaction", refuse)
        with pytest.raises(DiskGoneError):
            await work.service.compactions.perform(ordered.compaction_id, holder="me")
    assert await count_rows(work) > 2 * BATCH
    return ordered


async def let_go(work: Compacting, compaction_id: str) -> None:
    """Its process is gone, and its time is over."""
    over = update(tables.compaction).where(tables.compaction.c.compaction_id == compaction_id).values(held_until=0)
    await work.store.write(lambda connection: connection.execute(over) and None)


async def test_no_commit_of_a_compaction_writes_more_than_a_batch(compacting: Compacting) -> None:
    """Its rows and its analyses in batches, and last the few rows that make them visible."""
    await compacting.thread(turns=12)

    with commits() as written:
        done = await compacting.compact()

    rows = await count_rows(compacting)
    assert done.status is CompactionStatus.COMMITTED
    assert rows > 4 * BATCH
    assert sum(written) > rows
    assert max(written) <= BATCH + BESIDE


async def test_nobody_sees_a_row_before_the_commit(compacting: Compacting, monkeypatch: pytest.MonkeyPatch) -> None:
    """No page, no search, no name of a drop, no ledger to verify; after the commit all of them."""
    await compacting.thread(turns=12)
    ordered = await broken_off(compacting, monkeypatch)
    drops, compaction_id = compacting.service.drops, ordered.compaction_id
    named = await compacting.store.read(
        lambda connection: connection.scalars(select(tables.ledger_row.c.row_id).limit(1)).one()
    )

    assert await drops.page(TENANT, compaction_id, ANYTHING) == []
    assert await drops.search_tenant(TENANT, DropQuery(text="OPS-3")) == []
    assert await drops.search_thread(TENANT, "thread-1", DropQuery(text="OPS-3")) == []
    with pytest.raises(NotFound):
        await drops.get(TENANT, f"{compaction_id}.{named}")
    with pytest.raises(NotFound):
        await compacting.service.verify(TENANT, compaction_id)

    done = await compacting.service.compactions.perform(compaction_id, holder="me")

    assert done.status is CompactionStatus.COMMITTED
    assert await drops.page(TENANT, compaction_id, ANYTHING)
    assert await drops.search_tenant(TENANT, DropQuery(text="OPS-3"))
    assert (await drops.get(TENANT, f"{compaction_id}.{named}")).compaction_id == compaction_id
    check = await compacting.service.verify(TENANT, compaction_id)
    assert (check.damage, check.row_count) == (None, await count_rows(compacting))


async def test_rows_without_a_commit_are_swept(compacting: Compacting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not while a process performs the compaction; afterwards in batches, and those of a ledger that stands stay."""
    await compacting.thread(turns=12)
    await compacting.compact()
    standing = await count_rows(compacting)
    for _ in range(12):
        await compacting.say()
    ordered = await broken_off(compacting, monkeypatch)

    assert await compacting.service.compactions.clear_left() == 0
    assert await count_rows(compacting) > standing

    await let_go(compacting, ordered.compaction_id)
    with commits() as written:
        assert await compacting.service.compactions.clear_left() == 1

    assert max(written) <= BATCH + 1
    assert await count_rows(compacting) == standing
    assert await compacting.service.compactions.clear_left() == 0
    done = await compacting.service.compactions.perform(ordered.compaction_id, holder="another")
    assert done.status is CompactionStatus.COMMITTED
    assert {each.damage for each in await compacting.service.verify_thread(TENANT, "thread-1")} == {None}


async def test_the_next_compaction_of_the_thread_takes_what_was_left(
    compacting: Compacting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one that nobody performs any more; what is there then is the new ledger."""
    await compacting.thread(turns=12)
    ordered = await broken_off(compacting, monkeypatch)
    await let_go(compacting, ordered.compaction_id)

    done = await compacting.compact()

    check = await compacting.service.verify(TENANT, done.compaction_id)
    assert (check.damage, check.row_count) == (None, await count_rows(compacting))


async def test_rows_of_a_compaction_that_is_refused_go_with_it(
    compacting: Compacting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one was faster each time: nothing of this one is left."""
    await compacting.thread(turns=12)
    ordered, _ = await compacting.service.compactions.begin(TENANT, "thread-1", compacting.order())
    write = ahead.write_ahead

    async def overtaken(database: Any, done: Commit) -> None:
        await write(database, done)
        monkeypatch.setattr(compaction_run, "write_ahead", write)
        await compacting.compact()

    monkeypatch.setattr(compaction_run, "write_ahead", overtaken)
    done = await compacting.service.compactions.perform(ordered.compaction_id, holder="slow")

    assert done.status in (CompactionStatus.ABORTED, CompactionStatus.REFUSED)
    (standing,) = await compacting.service.verify_thread(TENANT, "thread-1")
    assert (standing.damage, standing.row_count) == (None, await count_rows(compacting))


async def test_an_erasure_between_the_batches_and_the_commit_wins(
    compacting: Compacting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows that have the words go at once, and the compaction is made again without them."""
    await compacting.thread(turns=10)
    seq = await compacting.say(text="The code word is ALBATROSS-77, keep it.") - 2
    await compacting.say()
    write, after_erasure = ahead.write_ahead, list[int]()

    async def erased_meanwhile(database: Any, done: Commit) -> None:
        await write(database, done)
        monkeypatch.setattr(compaction_run, "write_ahead", write)
        await compacting.service.erase(TENANT, "thread-1", [seq])
        after_erasure.append(await count_rows(compacting))

    monkeypatch.setattr(compaction_run, "write_ahead", erased_meanwhile)
    done = await compacting.compact()

    assert after_erasure == [0]
    assert done.status is CompactionStatus.COMMITTED
    bodies = await compacting.store.read(lambda connection: connection.scalars(select(tables.ledger_row.c.body)).all())
    assert not any(b"albatross" in body.lower() for body in bodies)
    check = await compacting.service.verify(TENANT, done.compaction_id)
    assert (check.damage, check.row_count) == (None, len(bodies))


async def test_a_holder_that_lost_its_hold_writes_no_further_batch(
    compacting: Compacting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another took the compaction between two batches: the ledger is the other's, whole."""
    await compacting.thread(turns=12)
    ordered, _ = await compacting.service.compactions.begin(TENANT, "thread-1", compacting.order())
    add, taken = rows_ahead.add_ahead, list[Any]()

    def overtaken(connection: Connection, compaction_id: str, holder: str, first: int, values: Any) -> bool:
        if first >= BATCH and holder == "slow" and not taken:
            now_us = real_now_us()
            theirs = update(tables.compaction).values(held_until=0)
            connection.execute(theirs.where(tables.compaction.c.compaction_id == compaction_id))
            taken.append(hold(connection, compaction_id, "fast", None, now_us, now_us + 60_000_000))
        return add(connection, compaction_id, holder, first, values)

    monkeypatch.setattr(rows_ahead, "add_ahead", overtaken)
    # What raises is undone; so the other takes it again, in a unit of its own.
    stopped = await compacting.service.compactions.perform(ordered.compaction_id, holder="slow")
    assert (stopped.status, len(taken)) == (CompactionStatus.SUMMARISING, 1)
    await let_go(compacting, ordered.compaction_id)

    done = await compacting.service.compactions.perform(ordered.compaction_id, holder="fast")

    assert done.status is CompactionStatus.COMMITTED
    check = await compacting.service.verify(TENANT, done.compaction_id)
    assert (check.damage, check.row_count) == (None, await count_rows(compacting))


async def test_a_hold_outlasts_the_lease_of_a_worker_that_only_waits(compacting: Compacting) -> None:
    """It cannot renew behind SQLite's write lock, and its lock file says that it lives: nobody takes its work."""
    store = compacting.store
    await compacting.thread()
    ordered, _ = await compacting.service.compactions.begin(TENANT, "thread-1", compacting.order())
    now_us = real_now_us()
    living = ["w1"]
    compacting.service.compactions.beating = lambda ids: [each for each in ids if each in living]
    await store.write(lambda connection: register(connection, "w1", 600.0, "{}"))
    await store.write(
        lambda connection: hold(connection, ordered.compaction_id, "first", "w1", now_us, now_us + 3_600_000_000)
    )
    await store.write(lambda connection: expire(connection, ["w1"]))

    assert await compacting.service.compactions.unfinished() == []
    waiting = await compacting.service.compactions.perform(ordered.compaction_id, holder="second")
    assert waiting.status is CompactionStatus.SUMMARISING

    living.clear()
    assert [each.compaction_id for each in await compacting.service.compactions.unfinished()] == [ordered.compaction_id]
    done = await compacting.service.compactions.perform(ordered.compaction_id, holder="second")
    assert done.status is CompactionStatus.COMMITTED
