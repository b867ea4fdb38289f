"""An erased word does not come back in a copy of its thread that was under way."""

from functools import partial
from typing import Any

import pytest

from tests.conformance.copying import (
    BATCH,
    SECRET,
    SECRET_SEQ,
    PowerCutError,
    a_thread,
    check_whole,
    copy,
    entry_count,
    numbers,
    stored,
)
from tests.conformance.store import Store
from tests.support.factories import TENANT
from threadmark.memory import ErasureManifest, Origin
from threadmark.state import (
    Conflict,
    Thread,
    clear_copies,
    tables,
    unfinished_copies,
)
from threadmark.state.append import thread_copies
from threadmark.state.threads.erasure import erase_in_thread
from threadmark.workers.tasks.erased_json import Erased
from threadmark.workers.tasks.journal_erasure import JournalCopies


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches so small that a short thread needs several."""
    assert thread_copies.BATCH_COUNT <= 500
    monkeypatch.setattr(thread_copies, "BATCH_COUNT", BATCH)


async def erase(store: Store, thread: Thread) -> None:
    """The source loses the secret: the first unit of an erasure."""
    erased = Erased(seqs=[SECRET_SEQ])
    step = await store.write(partial(erase_in_thread, thread=thread.number, rewrite=erased))
    assert step.entry_count <= 1


@pytest.mark.parametrize("after_writes", [1, 2, 3, 6])
@pytest.mark.parametrize("clears", [True, False])
async def test_a_copy_has_no_words_that_were_erased_before_it_is_shown(
    store: Store, after_writes: int, clears: bool
) -> None:
    """Erased after each of its writes: it is begun anew, also if the eraser dies before it clears copies."""
    source, writes = await a_thread(store), 0

    async def erase_meanwhile() -> None:
        nonlocal writes
        writes += 1
        if writes == after_writes:
            await erase(store, source)
            if clears:
                await clear_copies(store.database, partial(unfinished_copies, source=source.number))
                assert SECRET not in await stored(store)

    copied = await copy(store, erase_meanwhile)

    assert SECRET not in await stored(store)
    await check_whole(store, await store.seen(source), copied)


async def test_an_erasure_takes_unfinished_copies_with_it(store: Store) -> None:
    """What is left of a copy whose process died has the words, so it does not wait for its time."""
    source, writes = await a_thread(store), 0

    async def cut() -> None:
        nonlocal writes
        writes += 1
        if writes >= 4:
            raise PowerCutError

    with pytest.raises(PowerCutError):
        await copy(store, cut)
    assert len(await numbers(store)) == 2
    origin = Origin(thread_ref="source", seq=SECRET_SEQ)
    erasing = ErasureManifest(
        assertion_ids=frozenset(), texts=frozenset(), origins=(origin,), whole_thread=None, after=None
    )

    await JournalCopies(store.database).erasure(TENANT).erase(erasing)

    assert await numbers(store) == [source.number]
    assert SECRET not in await stored(store)


async def test_a_thread_that_keeps_losing_words_is_not_copied(store: Store) -> None:
    """After some attempts the caller has to retry, and nothing is left."""
    source = await a_thread(store)

    async def erase_again() -> None:
        erased = update_erasures(source.number)
        await store.write(lambda connection: connection.execute(erased) and None)

    with pytest.raises(Conflict):
        await copy(store, erase_again)

    assert await numbers(store) == [source.number]
    assert await entry_count(store) == source.head_seq


def update_erasures(number: int) -> Any:
    """As an erasure counts itself."""
    thread = tables.thread
    return thread.update().where(thread.c.number == number).values(erasures=thread.c.erasures + 1)
