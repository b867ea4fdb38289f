"""What compactions took away comes back, word for word: over both databases."""

import random
import re

import msgspec
import pytest

from tests.conformance.compacting import POLICY, Compacting, compacting, compaction_engine
from tests.support.factories import TENANT
from threadmark.compaction import CompactionStatus, DropFilter, DropQuery, NothingToUndo, Policy
from threadmark.state import NotFound

__all__ = ["compacting", "compaction_engine"]

LEVEL_COUNT, TURN_COUNT = 10, 8
OTHER_TENANT = "another tenant"
#: Keeps next to nothing, so that there are drops to speak of.
SPARE = Policy(keep_last_turns=1, min_gain=0.0, summary_tokens=40, appendix_tokens=0)


async def test_ten_levels_come_back_byte_for_byte(compacting: Compacting) -> None:
    """Each level has its hash again on the way back, after an undo, after the undo of that, and down again."""
    await compacting.thread(turns=LEVEL_COUNT + 3)
    hashes, done = [await compacting.render_hash()], []
    for level in range(LEVEL_COUNT):
        policy = msgspec.structs.replace(POLICY, keep_last_turns=LEVEL_COUNT + 1 - level)
        done.append(await compacting.compact(policy=policy))
        hashes.append(await compacting.render_hash())
    assert [each.status for each in done] == [CompactionStatus.COMMITTED] * LEVEL_COUNT
    assert len(set(hashes)) == LEVEL_COUNT + 1

    for level in reversed(range(LEVEL_COUNT)):
        kept = await compacting.service.views.restore(TENANT, done[level].compaction_id)
        assert await compacting.render_hash() == hashes[level]
        undone = await compacting.service.views.undo(TENANT, "thread-1", kept.view.view_id)
        assert await compacting.render_hash() == hashes[level + 1]
        await compacting.service.views.undo(TENANT, "thread-1", undone.view.view_id)
        assert await compacting.render_hash() == hashes[level]
    for level in range(LEVEL_COUNT):
        await compacting.service.views.activate(TENANT, "thread-1", str(done[level].view_id))
        assert await compacting.render_hash() == hashes[level + 1]


@pytest.mark.parametrize("count", [12, pytest.param(10_000, marks=pytest.mark.soak)])
async def test_restores_in_any_order_are_byte_identical(compacting: Compacting, count: int) -> None:
    """From any of ten levels down to any other, undone, and the undo undone: each time the very bytes (G8)."""
    await compacting.thread(turns=LEVEL_COUNT + 3)
    hashes, done = [await compacting.render_hash()], []
    for level in range(LEVEL_COUNT):
        policy = msgspec.structs.replace(POLICY, keep_last_turns=LEVEL_COUNT + 1 - level)
        done.append(await compacting.compact(policy=policy))
        hashes.append(await compacting.render_hash())
    chance, views = random.Random(20_261_130), compacting.service.views

    for _ in range(count):
        high = chance.randint(1, LEVEL_COUNT)
        low = chance.randrange(high)
        await views.activate(TENANT, "thread-1", str(done[high - 1].view_id))
        assert await compacting.render_hash() == hashes[high]
        restored = await views.restore(TENANT, done[low].compaction_id)
        assert await compacting.render_hash() == hashes[low]
        undone = await views.undo(TENANT, "thread-1", restored.view.view_id)
        assert await compacting.render_hash() == hashes[high]
        await views.undo(TENANT, "thread-1", undone.view.view_id)
        assert await compacting.render_hash() == hashes[low]


async def test_what_was_said_since_stays_through_ten_levels(compacting: Compacting) -> None:
    """A turn after each level; the way back shows every turn once, and an undo comes back to where it began."""
    await compacting.thread(turns=TURN_COUNT)
    done = []
    for _ in range(LEVEL_COUNT):
        done.append(await compacting.compact())
        await compacting.say()
    before = await compacting.text()

    for level in reversed(done):
        kept = await compacting.service.views.restore(TENANT, level.compaction_id)
    whole = await compacting.text()
    assert "<compacted" not in whole
    replies = re.findall(r"Reply \d+", whole)
    assert len(replies) == len(set(replies)) == TURN_COUNT + LEVEL_COUNT
    undone = await compacting.service.views.undo(TENANT, "thread-1", kept.view.view_id)
    again = await compacting.service.views.undo(TENANT, "thread-1", undone.view.view_id)

    assert await compacting.text() == whole
    await compacting.service.views.activate(TENANT, "thread-1", str(done[-1].view_id))
    assert await compacting.text() == before
    with pytest.raises(NothingToUndo):
        await compacting.service.views.undo(TENANT, "thread-1", again.view.view_id)


async def test_a_restore_of_the_last_compaction_is_byte_identical(compacting: Compacting) -> None:
    """The rendered view has the hash that it had before."""
    await compacting.thread()
    before = await compacting.render_hash()
    done = await compacting.compact()
    assert await compacting.render_hash() != before

    await compacting.service.views.restore(TENANT, done.compaction_id)

    assert await compacting.render_hash() == before
    assert (await compacting.service.compactions.get(TENANT, done.compaction_id)).status is CompactionStatus.RESTORED


async def test_single_drops_and_ranges_come_back(compacting: Compacting) -> None:
    """A drop as a pin with its very words, a range as it was; the summaries stay."""
    await compacting.thread(turns=12)
    done = await compacting.compact(policy=SPARE)
    (drop, *_) = await compacting.service.drops.page(
        TENANT, done.compaction_id, DropFilter(statuses=("dropped", "promoted"), units=("clause",), roles=("human",))
    )

    await compacting.service.views.restore_drops(TENANT, done.compaction_id, [drop.drop_id])
    with_pin = await compacting.text()
    await compacting.service.views.restore_range(TENANT, done.compaction_id, *done.covers)
    with_range = await compacting.text()

    assert f">\n{drop.row.text}\n</pinned>" in with_pin
    assert "<compacted" in with_range
    assert with_range.count("Reply ") > with_pin.count("Reply ")
    with pytest.raises(NotFound):
        await compacting.service.views.restore_drops(TENANT, done.compaction_id, [f"{done.compaction_id}.nothing"])


async def test_every_drop_is_recalled_with_its_words(compacting: Compacting) -> None:
    """By its page, by its source with neighbours, and by search over the thread and the tenant."""
    await compacting.thread(turns=12)
    done = await compacting.compact(policy=SPARE)
    drops = [drop async for drop in compacting.service.drops.ledger(TENANT, done.compaction_id)]
    gone = [drop for drop in drops if drop.row.status in ("dropped", "promoted") and drop.row.unit == "atom"]
    assert gone

    for drop in gone:
        (found, *_) = await compacting.service.drops.search_thread(TENANT, "thread-1", DropQuery(text=drop.row.text))
        source = await compacting.service.drops.source(TENANT, drop.drop_id)
        first = drop.row.sources[0]
        said = next(entry for entry in source.entries if entry.seq == first.seq)
        assert said.text_of(first.part)[first.start : first.end] == drop.row.text
        assert drop.row.text in f"{found.recalled.before}{found.recalled.text}{found.recalled.after}"
        assert len(source.around) > len(source.entries)
    (anywhere, *_) = await compacting.service.drops.search_tenant(TENANT, DropQuery(text=gone[0].row.text))
    assert (anywhere.thread_id, anywhere.recalled.text) == ("thread-1", gone[0].row.text)
    assert await compacting.service.drops.search_tenant(OTHER_TENANT, DropQuery(text=gone[0].row.text)) == []


async def test_pages_of_drops_go_on_where_the_last_one_ended(compacting: Compacting) -> None:
    """No row twice and none left out, whatever the filter."""
    await compacting.thread()
    done = await compacting.compact()
    chosen = DropFilter(statuses=(), units=("atom",))
    everything = await compacting.service.drops.page(TENANT, done.compaction_id, chosen, count_max=10_000)
    paged, after = [], -1
    while page := await compacting.service.drops.page(TENANT, done.compaction_id, chosen, after=after, count_max=3):
        paged.extend(page)
        after = page[-1].number

    assert paged == everything
    assert len(paged) > 3
