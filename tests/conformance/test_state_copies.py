"""Copies are written in batches: no reader sees half of one, and none is left behind."""

from functools import partial
from itertools import pairwise
from typing import cast

import pytest
from sqlalchemy import Connection, select

from tests.conformance.copying import (
    BATCH,
    ENTRY_COUNT,
    PowerCutError,
    Watched,
    a_thread,
    check_whole,
    copy,
    entry_count,
    numbers,
)
from tests.conformance.store import Store
from tests.support.factories import TENANT, ai
from threadmark.state import (
    Database,
    NotFound,
    StateUpdated,
    ThreadFilter,
    Update,
    clear_copies,
    count_threads,
    every_thread,
    expired_copies,
    find_thread,
    label_thread,
    purge_expired,
    search_threads,
    tables,
    update_state,
)
from threadmark.state.append import thread_copies


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches so small that a short thread needs several."""
    assert thread_copies.BATCH_COUNT <= 500
    monkeypatch.setattr(thread_copies, "BATCH_COUNT", BATCH)


async def test_no_reader_sees_a_copy_before_its_last_commit(store: Store) -> None:
    """No commit writes more than a batch; no list, count, search or id shows a thread until all are written."""
    source = await a_thread(store)
    grown = [await entry_count(store)]
    lists: list[tuple[int, ...]] = []

    def listed(connection: Connection) -> tuple[int, ...]:
        hidden = select(tables.thread.c.thread_id).where(tables.thread.c.number != source.number)
        found = [find_thread(connection, TENANT, each) for each in connection.scalars(hidden)]
        page = search_threads(connection, TENANT, ThreadFilter(), sort_by="created_at", descending=True, limit=9)
        counted = count_threads(connection, TENANT, ThreadFilter())
        kept = every_thread(connection, after=0, count_max=9)
        return (len(page), counted, len(kept), len([each for each in found if each is not None]))

    async def look() -> None:
        grown.append(await entry_count(store))
        lists.append(await store.read(listed))

    copied = await copy(store, look)

    assert max(after - before for before, after in pairwise(grown)) == BATCH
    assert len(grown) >= ENTRY_COUNT / BATCH
    assert set(lists[:-1]) == {(1, 1, 1, 0)}
    assert lists[-1] == (2, 2, 2, 1)
    await check_whole(store, source, copied)


async def test_large_entries_make_small_batches(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is bounded by bytes too."""
    monkeypatch.setattr(thread_copies, "BATCH_BYTES", 1)
    source = await a_thread(store)
    grown = [await entry_count(store)]

    async def look() -> None:
        grown.append(await entry_count(store))

    copied = await copy(store, look)

    assert max(after - before for before, after in pairwise(grown)) == 1
    await check_whole(store, source, copied)


async def test_what_is_said_meanwhile_is_not_in_the_copy(store: Store) -> None:
    """It has the entries of its beginning, and the metadata of its end."""
    source, writes = await a_thread(store), 0

    async def go_on() -> None:
        nonlocal writes
        writes += 1
        if writes == 2:
            said = StateUpdated(messages=(ai("later", message_id="ai-later"),))
            change = Update(thread=source, entry=said, expected_seq=source.head_seq)
            await store.write(partial(update_state, change=change, now_us=store.now_us()))
            labels = partial(label_thread, thread=source.number, metadata={"a": 1}, now_us=store.now_us())
            await store.write(labels)

    copied = await copy(store, go_on)

    assert copied.head_seq == source.head_seq
    assert copied.metadata["a"] == 1
    found = await store.read(partial(count_threads, tenant_id=TENANT, chosen=ThreadFilter(metadata={"a": 1})))
    assert found == 2


async def test_a_thread_that_is_deleted_meanwhile_has_no_copy(store: Store) -> None:
    """A copy of it is refused as not found, and nothing is left."""
    await a_thread(store)
    writes = 0

    async def delete() -> None:
        nonlocal writes
        writes += 1
        if writes == 3:
            await store.delete("source")

    with pytest.raises(NotFound):
        await copy(store, delete)

    assert (await numbers(store), await entry_count(store)) == ([], 0)


async def test_what_a_crash_left_of_a_copy_is_swept_in_batches(store: Store) -> None:
    """Not before its time, because its process may be at work; and not by what removes whole threads at once."""
    source, writes = await a_thread(store), 0

    async def cut() -> None:
        nonlocal writes
        writes += 1
        if writes >= 4:
            raise PowerCutError

    with pytest.raises(PowerCutError):
        await copy(store, cut)
    left = await entry_count(store)
    assert left > source.head_seq + BATCH
    now_us = store.now_us()
    later_us = now_us + (thread_copies.KEEP_S + 1) * 1_000_000

    assert await clear_copies(store.database, partial(expired_copies, now_us=now_us)) == 0
    assert await store.write(partial(purge_expired, now_us=later_us, count_max=100)) == []
    grown = [left]

    async def look() -> None:
        grown.append(await entry_count(store))

    watched = cast(Database, Watched(store, look))
    assert await clear_copies(watched, partial(expired_copies, now_us=later_us)) == 1

    assert max(before - after for before, after in pairwise(grown)) <= BATCH
    assert await numbers(store) == [source.number]
    assert await entry_count(store) == source.head_seq


async def test_a_copy_whose_end_fails_leaves_nothing(store: Store) -> None:
    """An error of the callback that checks it before it is shown reaches the caller."""
    source = await a_thread(store)

    def fail(*_: object) -> None:
        raise PowerCutError

    async def nothing() -> None:
        return None

    with pytest.raises(PowerCutError):
        await copy(store, nothing, fail)

    assert await numbers(store) == [source.number]
    assert await entry_count(store) == source.head_seq
