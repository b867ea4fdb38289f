"""Messages in their places, beside a fold: made once, made anew where a word changed, and gone with erased words."""

from functools import partial

import msgspec
import pytest
from sqlalchemy import Connection

from tests.conformance.compacting import Compacting, compacting, compaction_engine
from tests.conformance.store import real_now_us
from tests.support.factories import TENANT
from threadmark.compaction import Loaded
from threadmark.compaction.input.placement import Placed
from threadmark.compaction.loading.thread_loader import MessageCounter, load_thread
from threadmark.compaction.summary import estimate_tokens
from threadmark.state import FoldCache, Message, StateUpdated, Update, update_state
from threadmark.state.threads.erasure import erase_in_thread
from threadmark.workers.tasks.erased_json import Erased

__all__ = ["compacting", "compaction_engine"]


class Reading:
    """A process that looks at the thread, counts by itself, and keeps folds of its own."""

    def __init__(self, work: Compacting) -> None:
        self.fold_cache = FoldCache()
        self.counted: list[str] = []
        self._work = work
        self._count = MessageCounter(self._counted)

    def _counted(self, text: str) -> int:
        self.counted.append(text)
        return estimate_tokens(text)

    async def look(self) -> Loaded:
        """The thread over the folds; nothing else than over the whole journal."""
        loaded = await self._work.store.read(
            lambda connection: load_thread(connection, TENANT, "thread-1", self._count, self.fold_cache)
        )
        whole = await self._work.store.read(
            lambda connection: load_thread(connection, TENANT, "thread-1", MessageCounter(estimate_tokens))
        )
        assert msgspec.json.encode(list(loaded.entries)) == msgspec.json.encode(list(whole.entries))
        assert (loaded.versions, loaded.view, loaded.current_view) == (whole.versions, whole.view, whole.current_view)
        return loaded

    async def kept(self) -> str:
        """What the messages say that are kept of the thread."""
        folded = self.fold_cache.find(await self._work.seen())
        if folded is None:
            return ""
        (placed,) = [each for each in folded.around.values() if isinstance(each, Placed)]
        said = [message.content for message in (*folded.state.messages, *placed.messages.values())]
        return str([*said, *(entry.text() for entry in placed.entries)])


async def write(work: Compacting, *messages: Message) -> None:
    """Write messages from outside."""
    seen = await work.seen()

    def unit(connection: Connection) -> None:
        change = Update(thread=seen, entry=StateUpdated(messages=messages), expected_seq=seen.head_seq)
        update_state(connection, change, real_now_us())

    await work.store.write(unit)


async def test_moves_of_a_view_make_no_message_again(compacting: Compacting) -> None:
    """A restore and its undo append to the journal; the entries of the messages stay the very same objects."""
    await compacting.thread(turns=4)
    reading = Reading(compacting)
    done = await compacting.compact()
    before = await reading.look()
    restored = await compacting.service.views.restore(TENANT, done.compaction_id)
    after = await reading.look()
    assert after.thread.head_seq > before.thread.head_seq
    assert after.entries is before.entries
    await compacting.service.views.undo(TENANT, "thread-1", restored.view.view_id)
    assert (await reading.look()).entries is before.entries


async def test_a_turn_makes_its_own_messages_and_no_others(compacting: Compacting) -> None:
    """What was there before keeps its entries."""
    await compacting.thread(turns=3)
    reading = Reading(compacting)
    before = await reading.look()
    await compacting.say()
    after = await reading.look()
    assert len(after.entries) == len(before.entries) + 2
    assert all(new is old for new, old in zip(after.entries, before.entries, strict=False))


@pytest.mark.parametrize("argument", [1, True])
async def test_a_message_written_anew_is_made_anew(compacting: Compacting, argument: object) -> None:
    """Also where the new one is equal in Python and another one in JSON."""
    await compacting.thread(turns=1)
    asks = {"id": "asks", "type": "ai", "content": "", "tool_calls": [{"id": "c", "name": "t", "arguments": {"n": 1}}]}
    await write(compacting, msgspec.convert(asks, Message))
    reading = Reading(compacting)
    await reading.look()
    asks["tool_calls"] = [{"id": "c", "name": "t", "arguments": {"n": argument}}]
    await write(compacting, msgspec.convert(asks, Message))
    loaded = await reading.look()
    (entry,) = [each for each in loaded.entries if each.message_id == "asks"]
    assert msgspec.json.decode(entry.calls[0].arguments)["n"] is argument


async def test_erased_words_go_with_the_fold(compacting: Compacting) -> None:
    """No entry that has them outlives the erasure, in what is kept or in what the next one reads."""
    await compacting.thread(turns=2)
    seq = await compacting.say(text="the code is XYZZY-123")
    reading = Reading(compacting)
    await reading.look()
    assert "XYZZY-123" in await reading.kept()
    seen = await compacting.seen()
    await compacting.service.erase(TENANT, "thread-1", [seq])
    erased = Erased(texts=["XYZZY-123"], whole=True)
    await compacting.store.write(partial(erase_in_thread, thread=seen.number, rewrite=erased))
    assert await reading.kept() == ""
    assert "XYZZY-123" not in str([entry.text() for entry in (await reading.look()).entries])
    assert "XYZZY-123" not in await reading.kept()


async def test_what_compaction_erased_is_erased_in_a_kept_fold(compacting: Compacting) -> None:
    """Compaction erases first, the journal afterwards: between the two the fold still holds, the message does not."""
    await compacting.thread(turns=2)
    seq = await compacting.say(text="A word.")
    reading = Reading(compacting)
    await reading.look()
    await compacting.service.erase(TENANT, "thread-1", [seq])
    erased = [entry for entry in (await reading.look()).entries if entry.erased]
    assert [entry.seq for entry in erased] == [seq]
