"""Deletions of threads: hidden by one commit, removed in batches, finished after a crash."""

from functools import partial
from itertools import pairwise
from typing import cast

import pytest
from sqlalchemy import Connection, func, select, update

from tests.conformance.copying import Watched
from tests.conformance.store import WORKER, Store, a_receipt
from tests.support.factories import TENANT, a_submission, replied
from threadmark.db import removal
from threadmark.state import (
    Database,
    NotFound,
    Reply,
    Thread,
    ThreadFilter,
    accept,
    count_threads,
    delete_thread,
    every_thread,
    find_run,
    find_thread,
    finish_deletions,
    get_wait,
    label_thread,
    list_open_waits,
    open_thread,
    queue_depths,
    remove_deleted,
    tables,
    unfinished_deletions,
)
from threadmark.state import (
    replied as reply_to,
)

UPDATE_COUNT = 40
left = partial(unfinished_deletions, count_max=10)


async def rows_left(store: Store) -> int:
    """Rows of every table but that of workers."""

    def count(connection: Connection) -> int:
        every = [each for each in tables.METADATA.sorted_tables if each is not tables.worker]
        return sum(connection.execute(select(func.count()).select_from(each)).scalar_one() for each in every)

    return await store.read(count)


async def hide(store: Store, thread_id: str) -> None:
    """The first commit of a deletion, after which its process dies."""
    await store.write(partial(delete_thread, tenant_id=TENANT, thread_id=thread_id))


async def test_a_thread_is_gone_with_the_first_commit(store: Store) -> None:
    """By no id and in no list, with its run, its question and the key of its run."""
    claimed, (wait,) = await store.asking("pay", receipt=a_receipt())
    run, thread = claimed.run, claimed.thread
    later = await store.accept("later", thread_id=thread.thread_id)

    await hide(store, thread.thread_id)

    read = store.read
    assert await read(partial(find_thread, tenant_id=TENANT, thread_id=thread.thread_id)) is None
    assert await read(partial(count_threads, tenant_id=TENANT, chosen=ThreadFilter())) == 0
    assert await read(partial(every_thread, after=0, count_max=10)) == []
    for each in (run, later):
        assert await read(partial(find_run, tenant_id=TENANT, run_id=each.run_id)) is None
    with pytest.raises(NotFound):
        await read(partial(get_wait, tenant_id=TENANT, wait_id=wait.wait_id))
    assert await read(partial(list_open_waits, count_max=10)) == []
    assert await read(queue_depths) == []
    assert await store.claim(WORKER) == []
    assert await read(partial(reply_to, tenant_id=TENANT, receipt=a_receipt())) is None
    again = await store.submission(a_submission("again", receipt=a_receipt()))
    assert again.run is not None
    assert again.run.thread_id != thread.thread_id


async def test_what_a_crash_left_is_found_and_goes(store: Store) -> None:
    """By a sweep, and by a second request for the same thread; the key of a new run is not taken with it."""
    before = await rows_left(store)
    claimed, writer = await store.begun(receipt=a_receipt())
    await store.put(writer, replied())
    thread_id = claimed.thread.thread_id
    await hide(store, thread_id)
    (left,) = await store.read(partial(unfinished_deletions, count_max=10))
    assert await store.read(partial(unfinished_deletions, count_max=10, tenant_id="other")) == []
    again = await store.submission(a_submission("again", receipt=a_receipt()))
    assert again.run is not None

    assert await store.write(partial(delete_thread, tenant_id=TENANT, thread_id=thread_id)) == left
    await finish_deletions(store.database, [left])
    # Of two processes that finish it, one comes later.
    assert await store.write(partial(remove_deleted, deletions=[left])) == ()

    with pytest.raises(NotFound):
        await store.delete(thread_id)
    replay = await store.submission(a_submission("again", receipt=a_receipt()))
    assert isinstance(replay.replay, Reply)
    await store.delete(again.run.thread_id)
    assert await rows_left(store) == before


async def test_a_thread_of_that_name_may_be_made_while_an_older_one_is_removed(store: Store) -> None:
    """And deleted too, before the first one is gone: each deletion takes its own rows."""
    before = await rows_left(store)
    for _ in range(2):
        await store.accept("hello", thread_id=(await store.thread("name")).thread_id)
        await hide(store, "name")
    kept = await store.accept("hello", thread_id=(await store.thread("name")).thread_id)

    left = await store.read(partial(unfinished_deletions, count_max=10))
    assert len(left) == 2
    await finish_deletions(store.database, left)

    assert await store.run(kept) == kept
    await store.delete("name")
    assert await rows_left(store) == before


async def test_no_commit_removes_more_than_some_rows(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """So others write in between. A row that is larger than a batch goes alone."""
    monkeypatch.setattr(removal, "ROW_COUNT", 7)
    claimed, writer = await store.begun()
    for _ in range(UPDATE_COUNT):
        await store.put(writer, replied())
    await hide(store, claimed.thread.thread_id)
    counts = [await rows_left(store)]

    async def look() -> None:
        counts.append(await rows_left(store))

    watched = cast(Database, Watched(store, look))
    await finish_deletions(watched, await store.read(left))

    assert counts[-1] == 0
    assert len(counts) > UPDATE_COUNT // 7
    # Beside them goes the row that says what is left.
    assert max(before - after for before, after in pairwise(counts)) <= 7 + 1
    monkeypatch.setattr(removal, "BYTE_COUNT", 1)
    claimed, writer = await store.begun()
    await store.put(writer, replied())
    await hide(store, claimed.thread.thread_id)
    counts[:] = [await rows_left(store)]
    await finish_deletions(watched, await store.read(left))

    assert counts[-1] == 0
    assert max(before - after for before, after in pairwise(counts)) <= 1 + 1


async def test_the_key_of_a_thread_goes_with_the_thread(store: Store) -> None:
    """What its creation answered has the words of its labels."""
    make = partial(
        open_thread,
        tenant_id=TENANT,
        thread_id="name",
        metadata={"label": "words"},
        keep_existing=True,
        receipt=a_receipt(),
        now_us=0,
    )
    assert isinstance(await store.write(make), Thread)
    assert isinstance(await store.write(make), Reply)

    await store.delete("name")

    assert await rows_left(store) == 0
    assert isinstance(await store.write(make), Thread)


async def test_a_key_of_a_worker_of_the_previous_version_goes_too(store: Store) -> None:
    """It did not note of which thread the answer is."""
    run = await store.accept("hello", receipt=a_receipt())
    await store.write(lambda connection: connection.execute(update(tables.receipt).values(thread=None)))

    await hide(store, run.thread_id)
    assert await store.read(partial(reply_to, tenant_id=TENANT, receipt=a_receipt())) is None
    await finish_deletions(store.database, await store.read(partial(unfinished_deletions, count_max=10)))

    assert await rows_left(store) == 0


async def test_labels_and_runs_of_a_deleted_thread_are_refused(store: Store) -> None:
    """Who read its number before finds nothing to write to."""
    thread = await store.thread("name")
    await hide(store, "name")

    with pytest.raises(NotFound):
        await store.write(partial(label_thread, thread=thread.number, metadata={"a": 1}, now_us=0))
    late = a_submission("late", thread_id="name")
    with pytest.raises(NotFound):
        await store.write(lambda connection: accept(connection, late, 0))
