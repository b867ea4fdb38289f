"""Threads: found by their labels, listed in pages that skip nothing, deleted whole."""

from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, func, select

from tests.conformance.store import Store, a_receipt
from tests.support.factories import NOW_US, TENANT, a_submission, replied
from threadmark.state import (
    SORTS,
    NotFound,
    ParkReason,
    Refused,
    Reply,
    RunChanges,
    RunOutcome,
    RunStatus,
    Thread,
    ThreadFilter,
    ThreadStatus,
    count_threads,
    finish_deletions,
    label_thread,
    purge_expired,
    search_threads,
    sort_key,
)
from threadmark.state.tables import METADATA

#: Keys that would be an accident if a key ever became a part of a statement or of a path in JSON.
HOSTILE_KEYS = ["a') OR 1=1 --", "a.b", "$.x", "", "a\x00", '"', "\\", "%", "_", "[0]", "a" * 300, "ключ", "🙂"]

VALUES: list[Any] = [1, 1.5, True, False, None, "", "1", "a\x00b", [1, 2], [2, 1], {"a": [None]}, 2**53, 2**53 + 1]
VALUES.append({"b": 1, "a": [None]})


async def found(store: Store, tenant_id: str = TENANT, **conditions: Any) -> list[str]:
    """The ids of the threads that a filter finds, oldest first."""
    chosen = ThreadFilter(**conditions)
    threads = await store.read(
        lambda connection: search_threads(
            connection, tenant_id, chosen, sort_by="created_at", descending=False, limit=1000
        )
    )
    count = await store.read(lambda connection: count_threads(connection, tenant_id, chosen))
    assert count == len(threads)
    return [each.thread_id for each in threads]


async def delete(store: Store, thread_id: str, tenant_id: str = TENANT) -> None:
    await store.delete(thread_id, tenant_id)


async def test_a_key_of_a_filter_is_compared_and_never_executed(store: Store) -> None:
    """Any key finds the threads that have it and no other, of this tenant only (C70)."""
    await store.thread("foreign", "other tenant", **dict.fromkeys(HOSTILE_KEYS, "x"))
    for number, key in enumerate(HOSTILE_KEYS):
        await store.thread(f"thread-{number}", **{key: "x"})

    for number, key in enumerate(HOSTILE_KEYS):
        assert await found(store, metadata={key: "x"}) == [f"thread-{number}"]
        assert await found(store, metadata={key: "y"}) == []
        assert await found(store, metadata={key + "'": "x"}) == []


async def test_a_filter_compares_whole_values(store: Store) -> None:
    """By JSON value: a number is not its text, true is not 1, and the order of keys does not matter."""
    for number, value in enumerate(VALUES):
        await store.thread(f"thread-{number}", key=value)

    for number, value in enumerate(VALUES):
        assert await found(store, metadata={"key": value}) == [f"thread-{number}"]
    assert await found(store, metadata={"key": {"a": [None], "b": 1}}) == [f"thread-{len(VALUES) - 1}"]


async def test_a_filter_of_too_many_keys_is_refused(store: Store) -> None:
    """A thousand conditions would stop the database's parser; a nested value is only a value (C70)."""
    nested: Any = 1
    for _ in range(60):
        nested = {"deeper": nested}
    assert await found(store, metadata={"key": nested}) == []

    with pytest.raises(Refused):
        await found(store, metadata={f"key {number}": 1 for number in range(1_000)})


async def test_all_conditions_hold(store: Store) -> None:
    """Labels, status and ids together."""
    await store.thread("one", a=1, b=1)
    await store.thread("two", a=1)
    busy = await store.accept("hello", thread_id="two")

    assert await found(store) == ["one", "two"]
    assert await found(store, metadata={"a": 1, "b": 1}) == ["one"]
    assert await found(store, metadata={"a": 1}, status="busy") == [busy.thread_id]
    assert await found(store, ids=["one", "none"], metadata={"a": 1}) == ["one"]
    assert await found(store, ids=[]) == []
    assert await found(store, status="' OR 1=1 --") == []


async def test_labels_are_merged_key_by_key(store: Store) -> None:
    """A later value replaces an earlier one; true is another value than 1."""
    thread = await store.thread("one", a=1, b=1)
    labelled = partial(label_thread, thread=thread.number, now_us=NOW_US)
    await store.write(partial(labelled, metadata={"a": True, "c": None}))

    assert (await store.seen(thread)).metadata == {"a": True, "b": 1, "c": None}
    assert (await store.seen(thread)).metadata["a"] is True
    assert await found(store, metadata={"a": True}) == ["one"]
    assert await found(store, metadata={"a": 1}) == []


async def test_a_deleted_thread_has_no_label(store: Store) -> None:
    """Labelling it is refused because it is gone."""
    thread = await store.thread("one")
    await delete(store, "one")

    with pytest.raises(NotFound):
        await store.write(partial(label_thread, thread=thread.number, metadata={"a": 1}, now_us=NOW_US))


@pytest.mark.parametrize("descending", [False, True])
async def test_pages_skip_nothing_and_repeat_nothing(store: Store, descending: bool) -> None:
    """Fifteen threads of one instant, pages of four, threads that come and go in between: each one once (C51)."""
    for sort_by in SORTS:
        await _walk_there_and_back(store, f"tenant of {sort_by}", sort_by, descending)


async def _walk_there_and_back(store: Store, tenant_id: str, sort_by: str, descending: bool) -> None:
    store.now_us = lambda: NOW_US
    threads = [await store.thread(f"thread-{number:02}", tenant_id) for number in range(15)]
    dropped = {threads[3].thread_id, threads[11].thread_id}

    async def page(around: tuple[int | str, int] | None, *, backward: bool = False) -> list[Thread]:
        return await store.read(
            lambda connection: search_threads(
                connection,
                tenant_id,
                ThreadFilter(),
                sort_by=sort_by,
                descending=descending != backward,
                limit=4,
                around=around,
            )
        )

    seen: list[Thread] = []
    while batch := await page(sort_key(seen[-1], sort_by) if seen else None):
        seen += batch
        if len(seen) == 4:
            for each in dropped:
                await delete(store, each, tenant_id)
            await store.thread("late", tenant_id)
    back: list[Thread] = []
    while batch := await page(sort_key(back[-1] if back else seen[-1], sort_by), backward=True):
        back += batch

    stayed = [each.thread_id for each in threads if each.thread_id not in dropped]
    ids = [each.thread_id for each in seen]
    assert sorted(each for each in ids if each in stayed) == stayed
    assert len(ids) == len(set(ids))
    back_ids = [each.thread_id for each in reversed(back)]
    assert [each for each in back_ids if each in stayed] == [each for each in ids[:-1] if each in stayed]
    assert len(back_ids) == len(set(back_ids))


async def test_a_tenant_does_not_see_the_threads_of_another(store: Store) -> None:
    """The same id names another thread for another tenant; a foreign one is not there (I10)."""
    mine = await store.thread("same", a=1)
    theirs = await store.thread("same", "other", a=1)
    assert mine.number != theirs.number

    assert await found(store, metadata={"a": 1}) == ["same"]
    with pytest.raises(NotFound):
        await delete(store, "same", "a third")
    await delete(store, "same", "other")
    assert await found(store) == ["same"]


async def test_a_deleted_thread_leaves_no_row(store: Store) -> None:
    """Runs, entries, waits, labels, branches and receipts go with it; a second deletion finds nothing (C62)."""
    claimed, _ = await store.asking("pay", thread_id=None, receipt=a_receipt("key"), thread_metadata={"a": 1})
    await store.accept("more", thread_id=claimed.run.thread_id)
    assert len(await _row_counts(store)) > 4

    await delete(store, claimed.run.thread_id)

    assert set(await _row_counts(store)) <= {"worker"}
    with pytest.raises(NotFound):
        await delete(store, claimed.run.thread_id)


async def _row_counts(store: Store) -> dict[str, int]:
    """How many rows each table has, without those that have none."""

    def count(connection: Connection) -> dict[str, int]:
        tables = METADATA.sorted_tables
        return {each.name: connection.execute(select(func.count()).select_from(each)).scalar_one() for each in tables}

    return {name: number for name, number in (await store.read(count)).items() if number}


async def test_the_key_of_a_deleted_thread_s_run_names_a_new_request(store: Store) -> None:
    """Its answer named a run that is gone."""
    run = await store.accept("hello", receipt=a_receipt())
    await delete(store, run.thread_id)

    again = await store.submission(a_submission("hello", receipt=a_receipt()))

    assert not isinstance(again.replay, Reply)


async def test_threads_of_stateless_runs_are_in_nobody_s_list_and_go_when_their_time_has_come(store: Store) -> None:
    """Not before, and not while their run is unfinished: a person may be asked about it."""
    now_us = store.now_us()

    async def purged(at_us: int) -> int:
        deletions = await store.write(partial(purge_expired, now_us=at_us, count_max=100))
        await finish_deletions(store.database, deletions)
        return len(deletions)

    claimed, writer = await store.begun(expires_at_us=now_us + 1)
    assert await found(store) == []
    assert await purged(now_us) == 0
    assert await purged(now_us + 9) == 0
    parked = RunOutcome(status=RunStatus.PENDING, thread_status=ThreadStatus.INTERRUPTED, parked=ParkReason.IN_DOUBT)
    await store.put(writer, replied(), move=RunChanges(ending=parked))
    assert await purged(now_us + 9) == 0

    await store.bury_all()
    done = RunOutcome(status=RunStatus.SUCCESS, thread_status=ThreadStatus.IDLE)
    await store.put(writer, move=RunChanges(ending=done))

    assert await purged(now_us + 9) == 1
    assert await store.entries(claimed.thread.number) == []
