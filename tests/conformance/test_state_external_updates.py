"""Writing a thread from outside: updates, forks by update, and copies, while nobody holds it."""

import asyncio
from functools import partial

import pytest

from tests.conformance.store import Store, a_receipt
from tests.support.factories import TENANT, ai, asked, human, replied, returned
from threadmark.state import (
    Conflict,
    Entry,
    ExecutionId,
    Fork,
    LeaseLost,
    NotFound,
    Recorded,
    Reply,
    RunChanges,
    RunOutcome,
    RunStarted,
    RunStatus,
    StateUpdated,
    Stretch,
    Thread,
    ThreadBusy,
    ThreadFilter,
    ThreadState,
    ThreadStatus,
    Update,
    count_threads,
    fold,
    fork_lineage,
    update_state,
    visible,
)

MORE = StateUpdated(messages=(human("more", "human-more"),), by="ann")
DONE = RunChanges(ending=RunOutcome(status=RunStatus.SUCCESS, thread_status=ThreadStatus.IDLE))


async def a_talk(store: Store, *entries: Entry) -> Thread:
    """A thread whose run has ended."""
    claimed, writer = await store.begun("hello")
    await store.put(writer, *(entries or (replied(),)), move=DONE)
    return await store.seen(claimed.thread)


async def update(
    store: Store, thread: Thread, entry: Entry = MORE, *, fork_seq: int | None = None, **changes: object
) -> Recorded:
    """Append from outside, on a new branch from `fork_seq` if that is given."""
    fork = None
    if fork_seq is not None:
        leaves = await store.journal.read_leaves(thread.number)
        branch = 1 + max(leaves, default=0)
        lineage = fork_lineage(leaves, Stretch(thread.branch, fork_seq), branch)
        fork = Fork(branch=branch, parent=thread.branch, fork_seq=fork_seq, lineage=lineage)
    values = {"thread": thread, "entry": entry, "expected_seq": thread.head_seq, "fork": fork, **changes}
    return await store.write(partial(update_state, change=Update(**values), now_us=store.now_us()))  # type: ignore[arg-type]


async def state_of(store: Store, thread: Thread) -> ThreadState:
    """What the thread's present branch sees."""
    seen = await store.seen(thread)
    return fold(visible(await store.entries(seen.number), seen.lineage))


async def test_an_update_appends_an_entry_under_the_next_fence(store: Store) -> None:
    """It belongs to no run, and the chain holds."""
    thread = await a_talk(store)

    recorded = await update(store, thread)

    seen = await store.seen(thread)
    assert (recorded.seq, recorded.run, recorded.fence) == (thread.head_seq + 1, None, thread.fence + 1)
    assert (seen.head_seq, seen.fence) == (recorded.seq, recorded.fence)
    assert (await store.entries(thread.number))[-1] == recorded
    assert await store.journal.verify(thread) == []


async def test_a_thread_that_a_run_moves_refuses_updates(store: Store) -> None:
    """The holder would be refused with its next append otherwise; a run that waits for its turn counts too."""
    thread = await a_talk(store)
    await store.accept("go on", thread_id=thread.thread_id)

    with pytest.raises(ThreadBusy):
        await update(store, thread)
    assert len(await store.entries(thread.number)) == thread.head_seq


async def test_of_updates_at_once_one_is_done(store: Store, other_store: Store) -> None:
    """The others saw a thread that has moved: they have to read it again, and nothing of theirs is written."""
    thread = await a_talk(store)

    outcomes = await asyncio.gather(
        *(update((store, other_store)[n % 2], thread) for n in range(10)), return_exceptions=True
    )

    assert sum(isinstance(each, Recorded) for each in outcomes) == 1
    assert sum(isinstance(each, Conflict) for each in outcomes) == 9
    assert (await store.seen(thread)).head_seq == thread.head_seq + 1
    assert await store.journal.verify(thread) == []


async def test_a_holder_that_slept_cannot_write_after_an_update(store: Store) -> None:
    """The update took the next fence."""
    claimed, writer = await store.begun()
    await store.put(writer, replied(), move=DONE)
    await update(store, await store.seen(claimed.thread))

    with pytest.raises(LeaseLost):
        await store.put(writer, replied(ordinal=2))


async def test_an_update_that_answers_the_questions_ends_the_waiting(store: Store) -> None:
    """The waits fall away, and the thread is idle; while another one is open it is not."""
    claimed, (first, second) = await store.asking("delete", "pay")
    await update(store, await store.seen(claimed.thread), superseded=(first.wait_id,))
    assert (await store.seen(claimed.thread)).status is ThreadStatus.INTERRUPTED

    await update(store, await store.seen(claimed.thread), superseded=(second.wait_id,))

    assert (await store.seen(claimed.thread)).status is ThreadStatus.IDLE
    assert {each.status for each in await store.waits(claimed.run)} == {"superseded"}


async def test_a_fork_by_update_keeps_the_branch_that_was_left(store: Store) -> None:
    """The new branch sees its past up to the fork; the entries after it are all still there (O(1), nothing moves)."""
    thread = await a_talk(store, replied(text="the old answer"))

    await update(store, thread, fork_seq=1)

    seen = await store.seen(thread)
    assert (seen.branch, seen.lineage) == (1, (Stretch(0, 1), Stretch(1)))
    assert [message.content for message in (await state_of(store, thread)).messages] == ["hello", "more"]
    assert len(await store.entries(thread.number)) == thread.head_seq + 1
    assert await store.journal.verify(thread) == []


async def test_a_run_without_input_is_to_carry_the_last_execution_on(store: Store) -> None:
    """What is paid for and what is counted belongs together; whether it can is seen when the run begins."""
    thread = await a_talk(store)
    (before,) = await store.runs(thread.number)
    await update(store, thread)

    run = await store.accept(thread_id=thread.thread_id)

    assert run.execution_id == before.execution_id


async def test_a_run_that_begins_an_execution_says_so_in_its_row(store: Store) -> None:
    """The entry that tells and the row that is asked for by the steps and the doubts move together."""
    claimed, writer = await store.hold(await store.accept("hello"))
    begun = ExecutionId("another execution")
    entry = RunStarted(run_id=claimed.run.run_id, execution_id=begun, assistant="chat", source="input")

    await store.put(writer, entry, move=RunChanges(begins=begun))

    assert (await store.run(claimed.run)).execution_id == begun


async def test_a_copy_has_what_its_source_shows(store: Store) -> None:
    """The visible entries in a chain of its own, the labels, and no run; the source is untouched."""
    thread = await a_talk(store, replied(asked("look")), returned("tool-1-0"), replied(ordinal=2))
    written = StateUpdated(messages=(ai("", asked("look", "call-9"), message_id="ai-9"),))
    await update(store, thread, written, fork_seq=1)
    (key,) = (await state_of(store, thread)).calls
    await update(store, await store.seen(thread), StateUpdated(messages=(human("x", "human-x"),)))
    source = await store.seen(thread)

    copied = await store.copy(thread.thread_id)

    assert (copied.metadata, copied.status, copied.branch) == (source.metadata, ThreadStatus.IDLE, 0)
    assert [each.seq for each in await store.entries(copied.number)] == list(range(1, copied.head_seq + 1))
    assert (await state_of(store, copied)).messages == (await state_of(store, source)).messages
    assert key.startswith("tool-0-")
    assert await store.runs(copied.number) == []
    assert await store.journal.verify(copied) == []
    assert await store.seen(thread) == source


async def test_a_copy_of_calls_that_were_written_from_outside_and_made_folds(store: Store) -> None:
    """Its entries have other seqs than their originals, and the results still find their calls."""
    thread = await a_talk(store, replied(), replied(ordinal=2))
    written = StateUpdated(messages=(ai("", asked("look", "call-9"), message_id="ai-9"),))
    await update(store, thread, written, fork_seq=1)
    claimed, writer = await store.hold(await store.accept(thread_id=thread.thread_id))
    writer.turn_to(claimed.thread.branch)
    await store.begin(claimed, writer)
    (key,) = (await state_of(store, thread)).calls
    await store.put(writer, returned(key, "found", call_id="call-9"), move=DONE)

    copied = await store.copy(thread.thread_id)

    assert (await state_of(store, copied)).messages == (await state_of(store, thread)).messages
    assert (await state_of(store, copied)).messages[-1].content == "found"


async def test_a_copy_is_made_once_with_one_key(store: Store) -> None:
    """And only of a thread that is there."""
    thread = await a_talk(store)
    await store.copied(thread.thread_id, a_receipt())

    assert isinstance(await store.copied(thread.thread_id, a_receipt()), Reply)
    with pytest.raises(NotFound):
        await store.copied("none")
    assert await store.read(partial(count_threads, tenant_id=TENANT, chosen=ThreadFilter())) == 2
