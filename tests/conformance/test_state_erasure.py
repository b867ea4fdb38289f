"""Erasure in journals, on both databases: the words go, the chain verifies, the thread still folds and goes on."""

from functools import partial
from typing import Any

import msgspec
import pytest
from sqlalchemy import select

from tests.conformance.store import Store
from tests.support.factories import TENANT, asked, human, replied, returned
from threadmark.state import Receipt, RunRequest, Thread, fold, label_thread, read_lines
from threadmark.state.tables import METADATA, entry
from threadmark.state.threads import erasure
from threadmark.state.threads.erasure import (
    RowPlace,
    erase_in_rows,
    erase_in_thread,
    find_thread_numbers,
    holders,
    threads_telling,
)
from threadmark.workers.tasks.erased_json import ERASED, Erased

SECRET = "the code is XYZZY-123"
WORDS = Erased(texts=[SECRET])
SECRET_REQUEST = RunRequest(messages=(human(SECRET),), kwargs={"input": {"messages": SECRET}})


async def a_journal(store: Store) -> Thread:
    """A thread in which a secret was said, asked for, returned and repeated."""
    claimed, writer = await store.begun("x", request=SECRET_REQUEST, metadata={"title": SECRET})
    reply = replied(asked(code=SECRET), text=f"You said: {SECRET}.")
    await store.put(writer, reply, returned("tool-1-0", {"found": [SECRET]}), replied(ordinal=2, text="Done."))
    return claimed.thread


async def erase(store: Store, thread: Thread, erased: Erased = WORDS) -> int:
    """Erase in entries and rows; how many lost something."""
    step = await store.write(partial(erase_in_thread, thread=thread.number, rewrite=erased))
    assert step.after_seq is None
    rows = await store.write(partial(erase_in_rows, thread=thread.number, rewrite=erased))
    assert rows.after is None
    return step.entry_count + rows.row_count


async def everything(store: Store) -> str:
    """All rows of all tables, as text."""

    def read(connection: Any) -> str:
        return repr([connection.execute(select(table)).all() for table in METADATA.sorted_tables])

    return await store.read(read)


async def test_what_is_erased_is_nowhere_and_the_chain_verifies(store: Store) -> None:
    """S38, S39, F30: no row has the words, and no damage is found."""
    thread = await a_journal(store)
    assert "XYZZY" in await everything(store)

    assert await erase(store, thread) > 0

    assert "XYZZY" not in await everything(store)
    assert await store.journal.verify(await store.seen(thread)) == []


async def test_an_erased_journal_folds_as_it_folded(store: Store) -> None:
    """The same messages by the same ids, the same next step; only words are missing."""
    thread = await a_journal(store)
    before = fold(await store.entries(thread.number))

    await erase(store, thread)

    after = fold(await store.entries(thread.number))
    assert [each.id for each in after.messages] == [each.id for each in before.messages]
    assert (after.next, after.seq, after.calls.keys()) == (before.next, before.seq, before.calls.keys())
    assert [message.content for message in after.messages][:2] == [ERASED, f"You said: {ERASED}."]


async def test_erasing_twice_erases_once(store: Store) -> None:
    """A job that is begun again finds nothing to do, and the digest of what was there stays."""
    thread = await a_journal(store)
    await erase(store, thread)
    digests = await store.read(lambda c: c.execute(select(entry.c.erased).order_by(entry.c.seq)).all())

    assert await erase(store, thread) == 0
    assert await store.read(lambda c: c.execute(select(entry.c.erased).order_by(entry.c.seq)).all()) == digests
    assert await erase(store, thread, Erased(whole=True)) > 0
    assert await store.journal.verify(await store.seen(thread)) == []


async def test_rows_about_a_thread_are_erased_in_batches(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each unit looks at a few rows and says where to go on; together they are what one would have done."""
    assert erasure._ROW_COUNT <= 500
    monkeypatch.setattr(erasure, "_ROW_COUNT", 2)
    thread = await a_journal(store)
    for number in range(3):
        stored = Receipt(key=f"key-{number}", request_digest="", answer=lambda _: (200, msgspec.json.encode(SECRET)))
        await store.accept(thread_id=thread.thread_id, request=SECRET_REQUEST, receipt=stored)
    await store.write(partial(label_thread, thread=thread.number, metadata={"a": SECRET}, now_us=store.now_us()))

    counts: list[int] = []
    place: RowPlace | None = RowPlace(0, None)
    while place is not None:
        step = await store.write(partial(erase_in_rows, thread=thread.number, rewrite=WORDS, after=place))
        counts.append(step.row_count)
        place = step.after

    # Four requests, three replies, the metadata and its label.
    assert sum(counts) == 4 + 3 + 1 + 1
    assert len(counts) == 5
    rows = [METADATA.tables[name] for name in ("run", "wait", "receipt", "thread", "thread_label")]
    assert "XYZZY" not in await store.read(lambda c: repr([c.execute(select(each)).all() for each in rows]))


async def test_nobody_can_try_words_against_an_erased_entry(store: Store) -> None:
    """S39: its salt is gone, and other entries keep theirs."""
    thread = await a_journal(store)
    await erase(store, thread)

    rows = await store.read(lambda c: c.execute(select(entry).order_by(entry.c.seq)).all())
    assert {row.erased is None for row in rows} == {True, False}
    assert all((row.salt is None) == (row.erased is not None) for row in rows)
    lines = await store.read(partial(read_lines, thread=thread.number, after_seq=0, before_seq=99, count_max=99))
    assert [line.is_erased for line in lines] == [row.erased is not None for row in rows]


async def test_a_holder_goes_on_behind_an_erasure(store: Store) -> None:
    """F30: an erasure under a running turn moves no seq and no digest of the chain."""
    claimed, writer = await store.begun("x", request=SECRET_REQUEST)
    await erase(store, claimed.thread)
    await store.put(writer, replied(text="Later."))

    assert await store.journal.verify(await store.seen(claimed.thread)) == []
    assert await store.read(partial(holders, threads=[claimed.thread.number])) == {
        claimed.thread.number: claimed.thread.fence
    }


async def test_threads_are_found_in_their_tenant_alone(store: Store) -> None:
    """S34: neither by name nor by what they tell is another tenant's thread reached."""
    thread = await a_journal(store)

    def tells(payload: bytes) -> bool:
        return b"XYZZY" in payload

    for tenant_id, expected in ((TENANT, [thread.number]), ("other", [])):
        assert await store.read(partial(threads_telling, tenant_id=tenant_id, tells=tells)) == expected
        found = partial(find_thread_numbers, tenant_id=tenant_id, thread_ids=[thread.thread_id])
        assert await store.read(found) == expected
