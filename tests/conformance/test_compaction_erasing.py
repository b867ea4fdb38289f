"""An erasure of entries goes in batches: whatever happens between two of them, ledgers verify and the words go."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

import pytest
from sqlalchemy import select

from tests.conformance.compacting import Compacting, compacting, compaction_engine
from tests.conformance.test_compaction_ahead import broken_off, commits, count_rows
from tests.conformance.test_compaction_branches import fork_after
from tests.conformance.test_compaction_faults import rows_of_compaction
from tests.conformance.test_compaction_return import SPARE
from tests.support.bad_summarisers import Recorder
from tests.support.factories import TENANT, human
from threadmark.compaction import CompactionService, CompactionStatus, tables
from threadmark.compaction.erase import entry_erasure, erased_places, row_erasure
from threadmark.compaction.erase.entry_erasure import ErasedCounts
from threadmark.compaction.ledger import dropped_in, totals_of
from threadmark.compaction.store import ledger_rows, orders, rows_ahead
from threadmark.state import (
    Database,
    NotFound,
    RunStarted,
    StateUpdated,
    Update,
    update_state,
)

__all__ = ["compacting", "compaction_engine"]

SECRET = "Never write to CANARY-77120 at canary@secret.example, and pay it ${} for CANARY-{}."
SECRET_COUNT = 3
BATCH = 5
#: What a commit writes beside a batch: recalls, counts of a compaction.
BESIDE = 2
WRITE_COUNT_MAX = 200


class PowerCutError(Exception):
    """What a write fails with from some moment on."""


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches so small that a short thread needs several."""
    for module, name in (
        (erased_places, "PLACE_COUNT"),
        (row_erasure, "ROW_COUNT"),
        (entry_erasure, "STATEMENT_COUNT"),
        (entry_erasure, "ANALYSIS_COUNT"),
        (rows_ahead, "BATCH_COUNT"),
    ):
        assert getattr(module, name) <= 500
        monkeypatch.setattr(module, name, BATCH)


class Watched:
    """A database in which something happens before each write of an erasure."""

    def __init__(self, database: Database, before_write: Callable[[int], Awaitable[None]]) -> None:
        self._database, self._before_write = database, before_write
        self.write_count = 0

    async def write(self, unit: Any, **options: Any) -> Any:
        """What comes before the write, and the write."""
        self.write_count += 1
        await self._before_write(self.write_count)
        return await self._database.write(unit, **options)

    async def read(self, query: Any) -> Any:
        """The query's result."""
        return await self._database.read(query)


async def secrets(work: Compacting, thread_id: str = "thread-1") -> list[int]:
    """A thread that was compacted twice and has said some secrets; the seqs of the entries that said them."""
    await work.thread(turns=2, thread_id=thread_id)
    seqs = []
    for number in range(SECRET_COUNT):
        seqs.append(await work.say(thread_id, SECRET.format(number + 7, number)) - 2)
        await work.say(thread_id)
    await work.compact(thread_id, summariser=Recorder(), policy=SPARE)
    for _ in range(3):
        await work.say(thread_id)
    await work.compact(thread_id)
    return seqs


async def erase(
    work: Compacting, seqs: list[int], before_write: Callable[[int], Awaitable[None]], thread_id: str = "thread-1"
) -> tuple[ErasedCounts, int]:
    """Erase, while something happens before each write; the counts, and how many writes it took."""
    watched = Watched(work.store.database, before_write)
    service = CompactionService(cast(Database, watched), now=lambda: datetime.now(UTC))
    counts = await service.erase(TENANT, thread_id, seqs)
    return counts, watched.write_count


async def nothing(_: int) -> None:
    """Nothing happens."""


async def check_ledgers(work: Compacting, thread_id: str = "thread-1") -> None:
    """Every ledger verifies, and its counts are those of its rows."""
    checks = await work.service.verify_thread(TENANT, thread_id)
    assert [each.damage for each in checks] == [None] * len(checks)
    for check in checks:
        ledger = await work.store.read(partial(ledger_rows.read_rows, compaction_id=check.compaction_id))
        done = await work.store.read(partial(orders.find_compaction, compaction_id=check.compaction_id))
        assert done is not None
        assert done.totals == totals_of(ledger)
        assert done.critical_dropped == dropped_in(ledger).critical_count


async def check_gone(work: Compacting, thread_id: str = "thread-1") -> None:
    """No table of compaction has the words, and no view shows them."""
    left = {name: rows for name, rows in (await rows_of_compaction(work)).items() if "canary" in rows.casefold()}
    assert left == {}
    assert "canary" not in (await work.text(thread_id)).casefold()


async def test_no_commit_of_an_erasure_changes_more_than_a_batch(compacting: Compacting) -> None:
    """Places, rows, statements, analyses: each in batches."""
    seqs = await secrets(compacting)

    with commits() as written:
        counts = await compacting.service.erase(TENANT, "thread-1", seqs)

    assert counts.rows > 4 * BATCH
    assert sum(written) > counts.rows
    assert max(written) <= BATCH + BESIDE
    await check_ledgers(compacting)
    await check_gone(compacting)


async def test_an_erasure_that_is_cut_off_anywhere_is_finished_by_the_next(compacting: Compacting) -> None:
    """After each of its writes: all ledgers verify, all counts are right, and a second erasure leaves no word."""
    for writes in range(1, WRITE_COUNT_MAX, 2):
        thread_id = f"thread-{writes}"
        seqs = await secrets(compacting, thread_id)

        async def cut(number: int, writes: int = writes) -> None:
            if number > writes:
                raise PowerCutError

        try:
            _, count = await erase(compacting, seqs, cut, thread_id)
        except PowerCutError:
            await check_ledgers(compacting, thread_id)
            await compacting.service.erase(TENANT, thread_id, seqs)
            await check_ledgers(compacting, thread_id)
            await check_gone(compacting, thread_id)
            continue
        assert count <= writes
        break
    assert writes > 10


@pytest.mark.parametrize("at", [1, 2, 3, 5, 9])
async def test_a_compaction_between_two_batches_has_none_of_the_words(compacting: Compacting, at: int) -> None:
    """It knows the words only until their places are recorded, and then it is erased with the others."""
    seqs = await secrets(compacting)
    for _ in range(3):
        await compacting.say()

    async def compact(number: int) -> None:
        if number == at:
            done = await compacting.compact(policy=SPARE)
            assert done.status is CompactionStatus.COMMITTED

    await erase(compacting, seqs, compact)

    await check_ledgers(compacting)
    await check_gone(compacting)


async def test_two_erasures_at_once_leave_no_word_of_either(compacting: Compacting) -> None:
    """One within the other, before each of its writes: no summary is written again with the words of the other."""
    for at in range(1, WRITE_COUNT_MAX):
        thread_id = f"thread-{at}"
        seqs = await secrets(compacting, thread_id)

        async def erase_too(number: int, at: int = at, thread_id: str = thread_id, seqs: list[int] = seqs) -> None:
            if number == at:
                await compacting.service.erase(TENANT, thread_id, seqs[1:])

        _, count = await erase(compacting, seqs[:1], erase_too, thread_id)
        if count < at:
            break
        await check_ledgers(compacting, thread_id)
        await check_gone(compacting, thread_id)
        await compacting.delete(thread_id)
    assert at > 10


async def test_a_branch_that_is_made_meanwhile_is_looked_at_too(compacting: Compacting) -> None:
    """On it a message stands as an erased entry wrote it, though every other branch has a later version."""
    await compacting.thread(turns=2)
    started = next(
        each.entry
        for each in await compacting.store.entries((await compacting.seen()).number)
        if isinstance(each.entry, RunStarted)
    )
    for words in (SECRET, "Nothing to see here."):
        thread = await compacting.seen()
        written = StateUpdated(messages=(human(words, started.messages[0].id),))
        change = Update(thread=thread, entry=written, expected_seq=thread.head_seq)
        await compacting.store.write(partial(update_state, change=change, now_us=compacting.store.now_us()))
    seq = thread.head_seq

    async def fork(number: int) -> None:
        if number == 1:
            await fork_after(compacting, await compacting.seen(), seq)

    await erase(compacting, [seq], fork)

    assert (await compacting.seen()).branch == 1
    await check_gone(compacting)


async def test_a_thread_that_never_stands_still_is_erased_under_the_lock(
    compacting: Compacting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some looks its places are found in the commit that records them."""
    seqs = await secrets(compacting)
    monkeypatch.setattr(erased_places, "LOOK_COUNT", 0)

    counts = await compacting.service.erase(TENANT, "thread-1", seqs)

    assert counts.messages >= SECRET_COUNT
    await check_ledgers(compacting)
    await check_gone(compacting)


async def test_a_thread_that_is_deleted_meanwhile_ends_its_erasure(compacting: Compacting) -> None:
    """There is nothing left to erase; a lookup by number returns nothing without an error."""
    for at in (1, 4):
        seqs = await secrets(compacting, f"thread-{at}")
        number = (await compacting.seen(f"thread-{at}")).number

        async def delete(write: int, at: int = at) -> None:
            if write == at:
                await compacting.delete(f"thread-{at}")

        try:
            await erase(compacting, seqs, delete, f"thread-{at}")
        except NotFound:
            assert at == 1
        kept = select(tables.erasure).where(tables.erasure.c.thread == number)
        assert await compacting.service.erase_by_number(number, seqs) == ErasedCounts()
        found = await compacting.store.read(lambda connection, kept=kept: connection.execute(kept).all())  # type: ignore[misc]
        assert found == []


async def test_an_erasure_takes_rows_ahead_in_batches(compacting: Compacting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a compaction whose commit failed; a second attempt has a ledger without the words."""
    await compacting.thread(turns=4)
    seq = await compacting.say(text=SECRET.format(7, 7)) - 2
    for _ in range(4):
        await compacting.say()
    ordered = await broken_off(compacting, monkeypatch)
    assert await count_rows(compacting) > 3 * BATCH

    with commits() as written:
        await compacting.service.erase(TENANT, "thread-1", [seq])

    assert max(written) <= BATCH + BESIDE
    assert await count_rows(compacting) == 0
    done = await compacting.service.compactions.perform(ordered.compaction_id, holder="me")
    assert done.status is CompactionStatus.COMMITTED
    await check_ledgers(compacting)
    await check_gone(compacting)
