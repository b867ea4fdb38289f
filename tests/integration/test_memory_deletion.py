"""C53: what is deleted is never recalled again, whatever the index does; afterwards both hold the same."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.memory_house import CHANGE, HOME, NOW, draft, house, moment, question, remembered
from threadmark.memory import AlreadyRetracted, EdgeIndex, Forget, IndexUnavailable, Recollection, Selector, Which
from threadmark.memory.index.index import Arms, Entry, Probe, Within

COUNT, GONE_COUNT, RECALL_COUNT = 12, 4, 5


class Troubled(EdgeIndex):
    """The embedded index, which does not answer while it is `down`, and answers too late while it is `late`."""

    mood = "up"

    async def near(self, space: str, probe: Probe, place: Within, count_max: int) -> Arms:
        """The best entries, unless it is down."""
        self._fail("down")
        return await super().near(space, probe, place, count_max)

    async def put(self, space: str, entries: Sequence[Entry]) -> None:
        """Keep entries; late, it has kept them and the answer is lost."""
        self._fail("down")
        await super().put(space, entries)
        self._fail("late")

    async def remove(self, space: str, numbers: Sequence[int]) -> None:
        """Forget entries; late, it has forgotten them and the answer is lost."""
        self._fail("down")
        await super().remove(space, numbers)
        self._fail("late")

    def _fail(self, mood: str) -> None:
        if self.mood == mood:
            raise IndexUnavailable(mood)


async def planted(memory: Recollection) -> list[str]:
    """Twelve memories, the earlier the better it matches; their ids."""
    drafts = [draft(f"note{at} {'kayak ' * (COUNT - at)}", origin=moment(at, thread=f"t{at}")) for at in range(COUNT)]
    return [each.assertion_id for each in await remembered(memory, *drafts)]


async def recalled(memory: Recollection) -> list[str]:
    """The ids of the best five."""
    answers = await memory.recall(question("kayak", count_max=RECALL_COUNT))
    return [each.assertion.assertion_id for each in answers.answers]


async def agrees(memory: Recollection) -> None:
    """Index and database hold the same, entry by entry, with nothing waiting."""
    agreement = await memory.verify()
    assert agreement.agrees
    assert agreement.pending_count == 0
    assert agreement.entry_count == len(await memory.list(scope=HOME, which=Which.ALL, count_max=1_000))


@pytest.mark.parametrize("mood", ["up", "down", "late"])
async def test_what_is_retracted_is_recalled_no_more(mood: str, tmp_path: Path) -> None:
    """From the moment of the answer on; five that are held are returned; a second retraction changes nothing."""
    index = Troubled(tmp_path / "index")
    async with house(f"sqlite:///{tmp_path}/memory.db", index) as memory:
        ids = await planted(memory)
        gone, kept = ids[:GONE_COUNT], set(ids[GONE_COUNT:])
        assert set(gone) & set(await recalled(memory))
        index.mood = mood
        for each in gone:
            await memory.retract(each, scope=HOME, reason="wrong", change=CHANGE)

            assert each not in await recalled(memory)
        if mood == "up":
            await memory.index_pending()
        else:
            with pytest.raises(IndexUnavailable):
                await memory.index_pending()

        found = await recalled(memory)
        assert len(found) == RECALL_COUNT
        assert set(found) <= kept
        for each in gone:
            with pytest.raises(AlreadyRetracted):
                await memory.retract(each, scope=HOME, reason="again", change=CHANGE)
        index.mood = "up"
        await memory.index_pending()
        assert set(await recalled(memory)) <= kept
        assert {each.assertion_id for _, each in await memory.list(scope=HOME)} == kept
        await agrees(memory)


@pytest.mark.parametrize("mood", ["up", "down", "late"])
async def test_what_is_erased_is_recalled_no_more(mood: str, tmp_path: Path) -> None:
    """Its rows go at once and its entries when the index is back; a second erasure removes nothing."""
    index = Troubled(tmp_path / "index")
    async with house(f"sqlite:///{tmp_path}/memory.db", index) as memory:
        kept = set((await planted(memory))[GONE_COUNT:])
        index.mood = mood
        for at in range(GONE_COUNT):
            erasure = await memory.erase(Forget(source=Selector(thread_ref=f"t{at}")), tenant_id="acme", now=NOW)
            assert erasure.is_done is (mood == "up")

        found = await recalled(memory)
        assert len(found) == RECALL_COUNT
        assert set(found) <= kept
        index.mood = "up"
        await memory.resume_erasures(now=NOW)
        assert set(await recalled(memory)) <= kept
        await agrees(memory)
        assert (await memory.verify()).entry_count == COUNT - GONE_COUNT
        again = await memory.erase(Forget(source=Selector(thread_ref="t0")), tenant_id="acme", now=NOW)
        assert (again.is_done, again.counts["assertions"], again.counts["entries"]) == (True, 0, 0)
