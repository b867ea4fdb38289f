"""Writes: many to a commit, a bad one alone, and a caller that goes away at any instant."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import pytest
from sqlalchemy import Connection, text

from tests.conformance.gate import Gate
from tests.conformance.store import Store
from tests.support.cancellation import cancelled_at
from tests.support.factories import NOW_US
from tests.support.waiting import wait_until
from threadmark.state import Claim, JournalWriter, LeaseLost, TurnStarted, label_thread
from threadmark.state.errors import DatabaseClosed

NEIGHBOUR_COUNT = 5


class Broken(Exception):
    """What a bad unit raises."""


def an_entry(number: int = 2) -> TurnStarted:
    return TurnStarted(worker_id="w", attempt=number)


async def held(store: Store, thread: int | None = None) -> tuple[Gate, asyncio.Task[None]]:
    """The writer of a thread, busy until the gate is opened."""
    gate = Gate()
    busy = asyncio.create_task(store.database.write(gate, thread=thread))
    await wait_until(gate.entered.is_set, description="the writer to be busy")
    return gate, busy


def labelling(thread: int, **metadata: Any) -> Callable[[Connection], None]:
    """A unit that labels a thread."""
    return lambda connection: label_thread(connection, thread, metadata, now_us=NOW_US)


def breaking(thread: int, **metadata: Any) -> Callable[[Connection], None]:
    """A unit that labels a thread and then breaks."""

    def unit(connection: Connection) -> None:
        label_thread(connection, thread, metadata, now_us=NOW_US)
        raise Broken

    return unit


async def test_a_unit_that_raises_is_undone(store: Store) -> None:
    """Nothing of it stays, its caller gets the error, and the next one finds a clean transaction."""
    thread = await store.thread(a=1)

    with pytest.raises(Broken):
        await store.write(breaking(thread.number, a=2))
    await store.write(labelling(thread.number, b=1))

    assert (await store.seen(thread)).metadata == {"a": 1, "b": 1}


@pytest.mark.parametrize("bad", ["raises", "is refused by the database"])
async def test_a_bad_unit_fails_alone(store: Store, bad: str) -> None:
    """Those that share its commit are committed all the same."""
    threads = [await store.thread() for _ in range(NEIGHBOUR_COUNT)]
    broken = breaking(threads[0].number, a=2) if bad == "raises" else _refused_unit
    gate, busy = await held(store, 0)
    writes = [store.database.write(labelling(each.number, a=1), thread=0) for each in threads]
    writes.insert(2, store.database.write(broken, thread=0))
    tasks = [asyncio.create_task(write) for write in writes]
    await asyncio.sleep(0)
    before = store.database.commit_count
    gate.opened.set()

    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    await busy

    assert [index for index, each in enumerate(outcomes) if isinstance(each, Exception)] == [2]
    assert {tuple((await store.seen(each)).metadata.items()) for each in threads} == {(("a", 1),)}
    assert store.database.commit_count - before <= NEIGHBOUR_COUNT + 2


def _refused_unit(connection: Connection) -> None:
    connection.execute(text("INSERT INTO thread (number) VALUES (1)"))


async def test_a_stale_append_fails_alone_among_good_ones(store: Store) -> None:
    """Appends of many threads go in one statement or transaction; the refused one leaves no trace in it."""
    begun = [await store.begun(f"run {number}") for number in range(NEIGHBOUR_COUNT)]
    await store.bury_all()
    claims = await store.claim("worker-2", count_max=1)
    stale = claims[0].thread.number
    gate, busy = await held(store, 0)
    for _, writer in begun:
        writer.append(an_entry())
    tasks = [asyncio.create_task(writer.flush()) for _, writer in begun]
    await asyncio.sleep(0)
    gate.opened.set()

    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    await busy

    for (claimed, _), outcome in zip(begun, outcomes, strict=True):
        is_stale = claimed.thread.number == stale
        assert isinstance(outcome, LeaseLost) == is_stale
        assert len(await store.entries(claimed.thread.number)) == (2 if is_stale else 3)
        assert await store.journal.verify(claimed.thread) == []


async def test_writes_of_one_thread_are_done_in_the_order_asked_for(store: Store) -> None:
    """Whatever shares their commits."""
    thread = await store.thread()
    done: list[int] = []

    def unit(number: int) -> Callable[[Connection], None]:
        return lambda _connection: done.append(number)

    await asyncio.gather(*(store.database.write(unit(number), thread=thread.number) for number in range(100)))

    assert done == list(range(100))


async def test_a_caller_cancelled_before_its_write_began_leaves_nothing(store: Store) -> None:
    """It was only queued: it is taken out of the queue."""
    thread = await store.thread()
    gate, busy = await held(store, thread.number)
    write = asyncio.create_task(store.database.write(labelling(thread.number, a=1), thread=thread.number))
    await asyncio.sleep(0)

    write.cancel()
    with pytest.raises(asyncio.CancelledError):
        await write
    gate.opened.set()
    await busy

    assert (await store.seen(thread)).metadata == {}


async def test_a_caller_cancelled_after_its_write_began_waits_for_the_commit(store: Store) -> None:
    """A commit on its way cannot be called back: the caller learns of its cancellation when it is done."""
    thread = await store.thread()
    gate = Gate()

    def unit(connection: Connection) -> None:
        label_thread(connection, thread.number, {"a": 1}, now_us=NOW_US)
        gate(connection)

    write = asyncio.create_task(store.database.write(unit, thread=thread.number))
    await wait_until(gate.entered.is_set, description="the write to begin")
    write.cancel()
    await asyncio.sleep(0)
    assert not write.done()

    gate.opened.set()
    with pytest.raises(asyncio.CancelledError):
        await write

    assert (await store.seen(thread)).metadata == {"a": 1}


async def test_a_cancelled_caller_s_failed_write_troubles_nobody(store: Store) -> None:
    """Its error has no reader any more; it is not reported as one that was never fetched."""
    gate = Gate()

    def unit(connection: Connection) -> None:
        gate(connection)
        raise Broken

    write = asyncio.create_task(store.write(unit))
    await wait_until(gate.entered.is_set, description="the write to begin")
    write.cancel()
    gate.opened.set()

    with pytest.raises(asyncio.CancelledError):
        await write
    await store.thread()


async def an_append(store: Store, writer: JournalWriter) -> None:
    """An append, as a turn does it."""
    await store.put(writer, an_entry(3), an_entry(4))


async def a_write_and_a_read(store: Store, writer: JournalWriter) -> None:
    """A unit, and a query after it."""
    number = writer.append(an_entry(3)).seq
    await writer.flush()
    await store.read(lambda connection: connection.execute(text("SELECT 1")))
    assert number == 3


@pytest.mark.parametrize("scenario", [an_append, a_write_and_a_read])
@pytest.mark.parametrize("nested", [False, True])
async def test_a_cancellation_at_any_await_leaves_all_or_nothing(
    store: Store, scenario: Callable[[Store, JournalWriter], Awaitable[None]], nested: bool
) -> None:
    """For every k: no half-written unit, no lost connection, and the next ten requests are served (C42)."""

    async def alone(writer: JournalWriter) -> None:
        await scenario(store, writer)

    async def grouped(writer: JournalWriter) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(alone(writer))

    for step in count(1):
        claimed, writer = await store.begun(f"step {step}")
        was_cancelled = await cancelled_at(grouped(writer) if nested else alone(writer), step)

        entries = await store.entries(claimed.thread.number)
        assert len(entries) in {2, 4 if scenario is an_append else 3}
        assert await store.journal.verify(claimed.thread) == []
        await asyncio.gather(*(_a_normal_request(store, claimed) for _ in range(10)))
        if not was_cancelled:
            return


async def _a_normal_request(store: Store, claimed: Claim) -> None:
    seen = await store.seen(claimed.thread)
    await store.write(labelling(seen.number, asked=True))


async def test_a_closed_database_refuses_writes(store: Store) -> None:
    """What was queued is committed; what comes later is refused and not lost in silence."""
    thread = await store.thread()
    last = asyncio.create_task(store.write(labelling(thread.number, a=1)))
    await asyncio.sleep(0)

    await store.database.close()

    await last
    with pytest.raises(DatabaseClosed):
        await store.write(labelling(thread.number, a=2))
    again = Store.open(store.url)
    assert (await again.seen(thread)).metadata == {"a": 1}
    await again.database.close()
