"""Folds that are kept: moved on they are what the whole journal folds to, and none is used for too long."""

from functools import partial
from typing import cast

from sqlalchemy import Connection, update

from tests.conformance.store import Store
from tests.support.factories import asked, replied, returned
from threadmark.state import (
    FoldCache,
    Folded,
    RunChanges,
    RunOutcome,
    RunStatus,
    Thread,
    ThreadStatus,
    fold,
    fold_thread,
    visible,
)
from threadmark.state.entries.run_index import RunIndex
from threadmark.state.tables import entry, thread
from threadmark.state.threads.erasure import erase_in_thread
from threadmark.workers.tasks.erased_json import Erased

#: A connection that nobody may use.
NOTHING = cast(Connection, None)
SECRET = "XYZZY-123"
ENDED = RunChanges(ending=RunOutcome(status=RunStatus.SUCCESS, thread_status=ThreadStatus.IDLE))


async def a_thread(store: Store) -> Thread:
    """A thread whose first run has ended."""
    claimed, writer = await store.begun(f"the code is {SECRET}")
    await store.put(writer, replied(asked()), returned("tool-1-0", {"n": 1}), replied(ordinal=2, text="Done."))
    await writer.flush(ENDED)
    return await store.seen(claimed.thread)


async def go_on(store: Store, before: Thread, text: str = "and more") -> Thread:
    """The thread after another run."""
    run = await store.accept(text, thread_id=before.thread_id)
    claimed, writer = await store.hold(run)
    await store.begin(claimed, writer)
    await store.put(writer, replied(text="Yes."), move=ENDED)
    return await store.seen(before)


async def keep(store: Store, of: Thread) -> Folded:
    """Fold the thread and keep the fold, as a turn does when it ends."""
    folded = await store.journal.fold(of)
    store.journal.fold_cache.keep(of.number, folded)
    return folded.copy()


async def whole(store: Store, of: Thread) -> Folded:
    """What the journal folds to from its first entry."""
    return await store.read(lambda connection: fold_thread(connection, of))


async def test_a_fold_is_the_journal_folded(store: Store) -> None:
    """The same state as of its entries, and an outline that knows the run."""
    of = await a_thread(store)
    entries = await store.entries(of.number)
    (run,) = await store.runs(of.number)

    folded = await store.journal.fold(of)

    assert folded.state == fold(visible(entries, of.lineage))
    assert (folded.head_seq, folded.head_digest) == (len(entries), of.head_digest)
    assert folded.run_index.has_started(run.number)
    assert folded.run_index.first_seq(run.number) == 1


async def test_what_is_kept_as_it_stands_costs_no_query(store: Store) -> None:
    """And what was appended since costs one, which reads nothing else."""
    of = await a_thread(store)
    await keep(store, of)
    count = store.database.read_count

    assert (await store.journal.fold(of)).is_of(of)
    assert store.database.read_count == count

    later = await go_on(store, of)
    count = store.database.read_count
    moved = await store.journal.fold(later)
    assert store.database.read_count == count + 1
    assert moved == await whole(store, later)


async def test_a_reader_folds_what_nobody_folded_yet_and_asks_nothing_else(store: Store) -> None:
    """Who looks at a thread again finds it folded; the one before may have done to its copy what it liked."""
    of, fold_cache = await a_thread(store), store.journal.fold_cache
    first = await store.read(partial(fold_cache.read, thread=of))
    first.state.by_id.clear()

    again = fold_cache.read(NOTHING, of)

    assert again == await whole(store, of)


async def test_a_fold_ends_where_its_row_ends(store: Store) -> None:
    """A row that was read before further entries came is folded as it stood then, and moves on from there."""
    before = await a_thread(store)
    after = await go_on(store, before)

    folded = await keep(store, before)

    assert folded.state == fold((await store.entries(before.number))[: before.head_seq])
    assert await store.journal.fold(after) == await whole(store, after)


async def test_a_unit_that_writes_keeps_nothing(store: Store) -> None:
    """What it sees may never be committed."""
    of, fold_cache = await a_thread(store), store.journal.fold_cache

    seen = await store.write(lambda connection: fold_cache.read(connection, of, keep=False))

    assert seen == await whole(store, of)
    assert fold_cache.numbers == []


async def test_what_is_kept_does_not_move_with_a_turn(store: Store) -> None:
    """A turn moves its copy on, and may die before a word of it is on disk."""
    of = await a_thread(store)
    before = await keep(store, of)

    moved = await store.journal.fold(of)
    recorded = (await store.entries(of.number))[0]
    fold([recorded], moved.state)
    moved.run_index.see([recorded])

    assert await store.journal.fold(of) == before


async def test_erased_words_end_what_was_kept(store: Store) -> None:
    """S38: no turn goes on from a fold that has them, and the process holds them no longer."""
    of = await a_thread(store)
    assert SECRET in repr((await keep(store, of)).state)

    await store.write(partial(erase_in_thread, thread=of.number, rewrite=Erased(texts=[SECRET], whole=True)))

    folded = await store.journal.fold(await store.seen(of))
    assert SECRET not in str([message.content for message in folded.state.messages])
    assert store.journal.fold_cache.byte_count == 0


async def test_an_erasure_that_finds_nothing_ends_nothing(store: Store) -> None:
    """The count rises with what was taken out, and not with who asked."""
    of = await a_thread(store)

    await store.write(partial(erase_in_thread, thread=of.number, rewrite=Erased(texts=["not there"])))

    assert (await store.seen(of)).erasures == of.erasures


async def test_a_database_that_was_set_back_is_folded_anew(store: Store) -> None:
    """It went on differently from there, and has another entry at the same place."""
    of = await a_thread(store)
    await keep(store, of)
    other = b"\1" * 32

    def set_back(connection: Connection) -> None:
        last = update(entry).where(entry.c.thread == of.number, entry.c.seq == of.head_seq)
        connection.execute(last.values(digest=other))
        connection.execute(update(thread).where(thread.c.number == of.number).values(head_digest=other))

    await store.write(set_back)
    now = await store.seen(of)
    kept = store.journal.fold_cache.find(now)

    assert kept is not None
    assert not kept.is_of(now)
    assert await store.journal.fold(now) == await whole(store, now)


def of_bytes(count: int) -> Folded:
    """A fold of a journal of so many bytes."""
    state, run_index = fold(()), RunIndex()
    return Folded(
        head_seq=0, head_digest=b"", lineage=(), erasures=0, state=state, run_index=run_index, byte_count=count
    )


def test_the_oldest_give_way_to_the_newest() -> None:
    """Within a number of bytes; what is larger than all of them is not kept."""
    fold_cache = FoldCache(100)
    for number, count in ((1, 40), (2, 40), (3, 40), (4, 101)):
        fold_cache.keep(number, of_bytes(count))

    assert fold_cache.numbers == [2, 3]
    assert fold_cache.byte_count == 80
    fold_cache.keep(2, of_bytes(10))
    assert (fold_cache.numbers, fold_cache.byte_count) == ([3, 2], 50)


def test_what_nobody_asks_for_is_forgotten() -> None:
    """So that erased words end with it, even where nobody ever comes back to the thread."""
    now = [0.0]
    fold_cache = FoldCache(100, kept_s=60.0, clock=lambda: now[0])
    fold_cache.keep(1, of_bytes(1))
    now[0] = 59.0
    fold_cache.forget()
    assert fold_cache.numbers == [1]
    now[0] = 61.0
    fold_cache.forget()
    assert (fold_cache.numbers, fold_cache.byte_count) == ([], 0)
