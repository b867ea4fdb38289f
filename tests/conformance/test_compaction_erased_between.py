"""An erasure between two batches of a ledger: no batch brings the words back, and no ledger is committed with a gap."""

from typing import Any, cast

import pytest
from sqlalchemy import select

from tests.conformance.compacting import Compacting, compacting, compaction_engine
from tests.conformance.test_compaction_ahead import BATCH, count_rows, small_batches
from tests.conformance.test_compaction_branches import SECRET, secret_behind_a_fork
from tests.conformance.test_compaction_return import SPARE
from tests.support.factories import TENANT
from threadmark.compaction import Compaction, CompactionStatus, tables
from threadmark.compaction.run import ahead, compaction_run
from threadmark.compaction.run.commit import Commit

__all__ = ["compacting", "compaction_engine", "small_batches"]


class ErasedBetween:
    """A database in which entries are erased as soon as the first rows of a ledger are there; then rows are counted."""

    def __init__(self, work: Compacting, seq: int) -> None:
        self._work, self._seq = work, seq
        self._standing: int | None = None
        self._is_erased = False
        self.rows_after: list[int] = []  #: rows ahead behind the erasure, and behind each later write

    async def write(self, unit: Any, **options: Any) -> Any:
        """The write, with an erasure behind it if it was the first of a ledger."""
        if self._standing is None:
            self._standing = await count_rows(self._work)
        try:
            return await self._work.store.database.write(unit, **options)
        finally:
            if not self._is_erased and await count_rows(self._work) > self._standing:
                self._is_erased = True
                await self._work.service.erase(TENANT, "thread-1", [self._seq])
            if self._is_erased:
                self.rows_after.append(await count_rows(self._work) - self._standing)


async def compacted_with_an_erasure_between_batches(
    work: Compacting, monkeypatch: pytest.MonkeyPatch, seq: int
) -> tuple[Compaction, list[int]]:
    """A compaction, the rows ahead from the erasure on, until the ledger was made again."""
    write, between = ahead.write_ahead, ErasedBetween(work, seq)

    async def interrupted(_: Any, done: Commit) -> None:
        monkeypatch.setattr(compaction_run, "write_ahead", write)
        await write(cast(Any, between), done)

    monkeypatch.setattr(compaction_run, "write_ahead", interrupted)
    return await work.compact(policy=SPARE), between.rows_after


async def check_ledgers(work: Compacting) -> None:
    """All ledgers verify, no row is of none of them, and none has the words that were erased."""
    checks = await work.service.verify_thread(TENANT, "thread-1")
    assert [each.damage for each in checks] == [None] * len(checks)
    assert sum(each.row_count for each in checks) == await count_rows(work)
    bodies = await work.store.read(lambda connection: connection.scalars(select(tables.ledger_row.c.body)).all())
    assert not any(b"canary" in body.lower() for body in bodies)


async def test_after_an_erasure_no_further_batch_of_its_words_is_written(
    compacting: Compacting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two batches, on the same branch: the next one is refused, and the ledger is made again."""
    await compacting.thread(turns=6)
    seq = await compacting.say(text=SECRET) - 2
    for _ in range(6):
        await compacting.say()

    done, rows_after = await compacted_with_an_erasure_between_batches(compacting, monkeypatch, seq)

    assert rows_after == [0, 0]
    assert done.status is CompactionStatus.COMMITTED
    await check_ledgers(compacting)


async def test_a_ledger_that_an_erasure_on_another_branch_emptied_is_made_again(
    compacting: Compacting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two batches: what this branch says stays, so later batches are written, and the commit counts them."""
    seq, _, _ = await secret_behind_a_fork(compacting)
    for _ in range(8):
        await compacting.say()

    done, rows_after = await compacted_with_an_erasure_between_batches(compacting, monkeypatch, seq)

    assert rows_after[0] == 0
    assert rows_after[-1] >= BATCH
    assert done.status is CompactionStatus.COMMITTED
    await check_ledgers(compacting)
