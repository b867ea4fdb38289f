"""The journal: who holds the thread appends, nobody else, and what was appended is there."""

import asyncio
from unittest.mock import patch

import pytest

from tests.conformance.store import Store
from tests.support.factories import asked, replied, returned
from threadmark.state import LeaseLost, StepIntended, StepKey, ThreadGone, TurnStarted, fold
from threadmark.state.batches.append_batch import Append

ROUND_COUNT = 200


def an_entry(number: int = 1, worker_id: str = "w") -> TurnStarted:
    return TurnStarted(worker_id=worker_id, attempt=number)


async def test_what_was_flushed_is_read_back_in_order(store: Store) -> None:
    """Entries have a dense seq from 1, the fence and the run that wrote them, and come back as they were noted."""
    claimed, writer = await store.begun("hello")
    noted = [writer.append(an_entry(number)) for number in range(2, 5)]
    await writer.flush()

    read = await store.entries(claimed.thread.number)

    assert [each.seq for each in read] == [1, 2, 3, 4, 5]
    assert read[2:] == noted
    assert {(each.fence, each.run, each.branch) for each in read} == {(claimed.thread.fence, claimed.run.number, 0)}
    assert await store.journal.verify(claimed.thread) == []


async def test_what_was_only_noted_is_not_there(store: Store) -> None:
    """An entry is durable after the next flush; a crash before takes it along and leaves the journal whole."""
    claimed, writer = await store.begun()
    writer.append(an_entry(7))

    assert len(await store.entries(claimed.thread.number)) == 2
    assert await store.journal.verify(claimed.thread) == []


async def test_a_flush_of_nothing_commits_nothing(store: Store) -> None:
    """A redundant request for a flush costs nothing."""
    _, writer = await store.begun()
    before = store.database.commit_count

    await writer.flush()

    assert store.database.commit_count == before


async def test_a_sequential_step_costs_one_commit(store: Store) -> None:
    """The result of one step and the intent of the next travel together, whatever the number of steps."""
    _, writer = await store.begun()
    before = store.database.commit_count

    for ordinal in range(1, 11):
        writer.append(replied(asked(call_id=f"c{ordinal}"), ordinal=ordinal))
        writer.append(StepIntended(step_key=StepKey(f"tool-{ordinal}-0"), effect="once", idempotency_key="k"))
        await writer.flush()
        writer.append(returned(f"tool-{ordinal}-0", call_id=f"c{ordinal}"))

    assert store.database.commit_count - before == 10


async def test_concurrent_appends_share_commits(store: Store) -> None:
    """Group commit: what is queued while a commit is on its way goes with the next one, all of it."""
    hands = [(await store.begun(f"run {number}"))[1] for number in range(32)]
    before = store.database.commit_count
    for writer in hands:
        writer.append(an_entry(2))

    await asyncio.gather(*(writer.flush() for writer in hands))

    assert 1 <= store.database.commit_count - before <= 16


@pytest.mark.parametrize("length", [10, 2_000])
async def test_a_resume_is_one_query_whatever_the_length(store: Store, length: int) -> None:
    """Reading a journal back takes one read, and it gives everything."""
    claimed, writer = await store.begun()
    for number in range(length):
        writer.append(an_entry(number))
    await writer.flush()
    before = store.database.read_count

    entries = await store.entries(claimed.thread.number)

    assert store.database.read_count - before == 1
    assert len(entries) == length + 2


async def test_a_late_holder_cannot_write(store: Store) -> None:
    """Once a thread is leased again, the earlier holder's appends are refused and leave no trace (I3)."""
    claimed, late = await store.begun()
    await store.bury_all()
    (taken,) = await store.claim("worker-2")
    assert taken.thread.fence > claimed.thread.fence

    with pytest.raises(LeaseLost) as lost:
        await store.put(late, an_entry(2, "late"))

    assert type(lost.value) is LeaseLost
    assert lost.value.fence == claimed.thread.fence
    assert len(await store.entries(claimed.thread.number)) == 2
    await store.put(store.writer(taken), an_entry(2, "current"))
    assert await store.journal.verify(taken.thread) == []


async def test_a_late_holder_cannot_write_before_the_new_one_has_written(store: Store) -> None:
    """The claim alone is enough: the fence has moved, though the head has not."""
    _, late = await store.begun()
    await store.bury_all()
    (taken,) = await store.claim("worker-2")

    with pytest.raises(LeaseLost):
        await store.put(late, an_entry(2, "late"))
    await store.put(store.writer(taken), an_entry(2, "current"))

    assert [each.entry for each in await store.entries(taken.thread.number)][2:] == [an_entry(2, "current")]


async def test_a_hand_that_lost_its_lease_never_writes_again(store: Store) -> None:
    """What comes after a refusal is refused too, whatever became of the thread meanwhile."""
    _, late = await store.begun()
    await store.bury_all()
    (taken,) = await store.claim("worker-2")
    with pytest.raises(LeaseLost):
        await store.put(late, an_entry(2, "late"))

    with pytest.raises(LeaseLost):
        await store.put(late, an_entry(3, "late"))

    assert len(await store.entries(taken.thread.number)) == 2


async def test_of_two_holders_that_append_at_once_exactly_one_does(store: Store, other_store: Store) -> None:
    """200 rounds: one append a seq, the other one is refused; no fork, no gap, nothing else of the loser (C13)."""
    claimed, stale = await store.begun()
    written = 2
    for number in range(ROUND_COUNT):
        # Both read the same head; the current one under a fence that is one higher.
        await store.bury_all()
        (taken,) = await other_store.claim(f"worker-{number + 2}")
        current = other_store.writer(taken)
        stale.append(an_entry(number, "stale"))
        current.append(an_entry(number, "current"))

        flushes = [stale.flush(), current.flush()] if number % 2 else [current.flush(), stale.flush()]
        outcomes = await asyncio.gather(*flushes, return_exceptions=True)

        (lost,) = [each for each in outcomes if each is not None]
        assert isinstance(lost, LeaseLost)
        written += 1
        stale = current

    entries = await store.entries(claimed.thread.number)
    assert [each.seq for each in entries] == list(range(1, written + 1))
    assert all(each.entry == an_entry(number, "current") for number, each in enumerate(entries[2:]))
    assert await store.journal.verify(claimed.thread) == []


async def test_two_hands_under_one_fence_cannot_both_append(store: Store) -> None:
    """A second hand of the same lease finds the head moved: the chain never forks."""
    claimed, writer = await store.hold(await store.accept("hello"))
    twin = store.writer(claimed)
    await store.put(writer, an_entry(1))

    with pytest.raises(LeaseLost):
        await store.put(twin, an_entry(2, "twin"))

    assert len(await store.entries(claimed.thread.number)) == 1


async def test_the_same_append_sent_again_counts_as_done(store: Store) -> None:
    """When a commit's answer was lost it is asked again; the journal has it once (F14)."""
    claimed, writer = await store.hold(await store.accept("hello"))
    append, sent = store.database.append, list[Append]()

    async def keep(asked: Append) -> int | None:
        sent.append(asked)
        return await append(asked)

    with patch.object(store.database, "append", keep):
        await store.put(writer, an_entry(1), an_entry(2))

    again = await append(sent[0])

    assert again is not None
    assert len(await store.entries(claimed.thread.number)) == 2
    assert await store.journal.verify(claimed.thread) == []


async def test_a_deleted_thread_is_distinguished_from_a_lost_lease(store: Store) -> None:
    """A worker that holds a deleted thread is refused from then on, with the reason."""
    claimed, writer = await store.begun()
    await store.delete(claimed.thread.thread_id)

    with pytest.raises(ThreadGone):
        await store.put(writer, an_entry(2))

    assert await store.entries(claimed.thread.number) == []


async def test_a_new_thread_is_never_written_by_the_holder_of_a_deleted_one(store: Store) -> None:
    """The number of a deleted thread is not given out again; a holder that slept meanwhile would write into it."""
    claimed, writer = await store.begun()
    await store.delete(claimed.thread.thread_id)
    again = await store.thread(claimed.thread.thread_id)

    with pytest.raises(ThreadGone):
        await store.put(writer, an_entry(2))

    assert again.number != claimed.thread.number
    assert await store.entries(again.number) == []


async def test_a_long_journal_is_read_in_parts(store: Store) -> None:
    """By seq: after one, and no more than so many."""
    claimed, writer = await store.begun()
    await store.put(writer, *(an_entry(number) for number in range(20)))

    part = await store.journal.read(claimed.thread.number, after_seq=5, count_max=3)

    assert [each.seq for each in part] == [6, 7, 8]


async def test_text_with_nul_comes_back_from_the_database(store: Store) -> None:
    """Every code point of a person's message and of a tool's result survives the store (C01)."""
    text = "abc\x00def\u2028🙂"
    claimed, writer = await store.begun(text)
    await store.put(writer, replied(asked()), returned("tool-1-0", {"text": text, "n": 1}))

    state = fold(await store.entries(claimed.thread.number))

    assert state.messages[0].content == text
    assert state.messages[-1].content == '{"text":"abc\\u0000def\u2028🙂","n":1}'
