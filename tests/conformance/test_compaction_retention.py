"""Words of ledgers that were kept long enough become digests, over both databases: the account stands."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from sqlalchemy import Connection

from tests.conformance.compacting import Compacting, compacting, compaction_engine
from tests.conformance.test_compaction_ahead import commits
from tests.support.factories import TENANT
from threadmark.compaction import Drop, DropQuery, Policy, Row
from threadmark.compaction.erase import retention
from threadmark.compaction.store import ledger_rows

__all__ = ["compacting", "compaction_engine"]

SPARE = Policy(keep_last_turns=1, min_gain=0.0, summary_tokens=40, appendix_tokens=0)
LONG, NONE = timedelta(days=30), timedelta(seconds=-1)


class CutOffError(Exception):
    """What a write fails with."""


async def ledger(work: Compacting, compaction_id: str) -> list[Drop]:
    """All of its rows."""
    return [drop async for drop in work.service.drops.ledger(TENANT, compaction_id)]


def has_words(row: Row) -> bool:
    """Whether anything of the words is left in it."""
    return bool(row.text or row.altered_to or row.superseded_by or row.canon != row.digest)


async def test_a_ledger_without_words_still_verifies(compacting: Compacting) -> None:
    """Names, statuses and totals stay, the chain and the journal agree; a digest that is changed does not pass."""
    await compacting.thread(turns=12)
    done = await compacting.compact(policy=SPARE)
    before = await ledger(compacting, done.compaction_id)

    assert await compacting.service.hash_words(LONG, 10) == 0
    assert await ledger(compacting, done.compaction_id) == before
    assert await compacting.service.hash_words(NONE, 10) == 1
    assert await compacting.service.hash_words(NONE, 10) == 0

    after = await ledger(compacting, done.compaction_id)
    assert any(has_words(drop.row) for drop in before)
    assert not any(has_words(drop.row) for drop in after)
    assert [(each.drop_id, each.row.row_id, each.row.status, each.row.sources) for each in after] == [
        (each.drop_id, each.row.row_id, each.row.status, each.row.sources) for each in before
    ]
    assert (await compacting.service.compactions.get(TENANT, done.compaction_id)).totals == done.totals
    (check,) = await compacting.service.verify_thread(TENANT, "thread-1")
    assert check.damage is None

    forged = msgspec.structs.replace(after[0].row, salt="0" * 32)

    def forge(connection: Connection) -> None:
        ledger_rows.put_rows(connection, done.compaction_id, {0: forged})

    await compacting.store.database.write(forge)
    assert "the words of" in str((await compacting.service.verify(TENANT, done.compaction_id)).damage)


async def test_words_go_in_batches(compacting: Compacting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut off between two of them a ledger verifies, and the next one goes on with it."""
    assert retention.ROW_COUNT <= 500
    monkeypatch.setattr(retention, "ROW_COUNT", 10)
    await compacting.thread(turns=12)
    done = await compacting.compact(policy=SPARE)
    writes = 0

    put = ledger_rows.put_rows

    def cut(*values: Any) -> None:
        nonlocal writes
        writes += 1
        if writes > 2:
            raise CutOffError
        put(*values)

    with monkeypatch.context() as patched:
        patched.setattr(ledger_rows, "put_rows", cut)
        with pytest.raises(CutOffError):
            await compacting.service.hash_words(NONE, 10)
    with_words = [has_words(drop.row) for drop in await ledger(compacting, done.compaction_id)]
    assert not any(with_words[:20])
    assert any(with_words[20:])
    assert (await compacting.service.verify(TENANT, done.compaction_id)).damage is None

    with commits() as written:
        assert await compacting.service.hash_words(NONE, 10) == 1

    assert max(written) <= 10 + 1
    assert not any(has_words(drop.row) for drop in await ledger(compacting, done.compaction_id))
    assert (await compacting.service.verify(TENANT, done.compaction_id)).damage is None


async def test_what_lost_its_words_is_recalled_from_the_journal(compacting: Compacting) -> None:
    """By its value in the thread and in the tenant, and by its source."""
    await compacting.thread(turns=12)
    done = await compacting.compact(policy=SPARE)
    gone = [
        drop
        for drop in await ledger(compacting, done.compaction_id)
        if drop.row.unit == "atom" and drop.row.status in ("dropped", "promoted")
    ]
    assert gone
    await compacting.service.hash_words(NONE, 10)

    for drop in gone:
        (found, *_) = await compacting.service.drops.search_thread(TENANT, "thread-1", DropQuery(text=drop.row.text))
        assert drop.row.text in f"{found.recalled.before}{found.recalled.text}{found.recalled.after}"
        assert (await compacting.service.drops.source(TENANT, drop.drop_id)).entries
    (anywhere, *_) = await compacting.service.drops.search_tenant(TENANT, DropQuery(text=gone[0].row.text))
    assert anywhere.recalled.text == gone[0].row.text


async def test_later_compactions_and_erasures_go_on(compacting: Compacting) -> None:
    """A row without words has its history in the next ledger, and is erased like any other."""
    await compacting.thread(turns=8)
    first = await compacting.compact(policy=SPARE)
    await compacting.service.hash_words(NONE, 10)
    await compacting.say()
    second = await compacting.compact(policy=SPARE)
    assert second.covers[0] == first.covers[0]
    ids = {drop.row.row_id for drop in await ledger(compacting, first.compaction_id)}
    again = [drop.row for drop in await ledger(compacting, second.compaction_id) if drop.row.row_id in ids]
    assert again
    assert any(first.compaction_id in (row.lost_at, *row.survived) for row in again)

    await compacting.service.erase(TENANT, "thread-1", range(first.covers[0], first.covers[1] + 1))

    assert [each.damage for each in await compacting.service.verify_thread(TENANT, "thread-1")] == [None] * 2
    assert {drop.row.salt for drop in await ledger(compacting, first.compaction_id) if drop.row.sources} == {""}
