"""Erasures reach every branch of a thread: each ledger verifies, and no branch shows the words. Both databases."""

import random
from dataclasses import dataclass, field
from functools import partial

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, select

from tests.conformance.compacting import POLICY, Compacting, compacting, compaction_engine
from tests.conformance.test_compaction_return import SPARE
from tests.support.bad_summarisers import Recorder
from tests.support.factories import TENANT, human
from threadmark.compaction import CompactionStatus, SummaryPrompt, SummaryReply
from threadmark.compaction.store import ledger_rows as rows
from threadmark.compaction.tables import METADATA
from threadmark.state import (
    Fork,
    ModelReplied,
    RunStarted,
    StateUpdated,
    Stretch,
    Thread,
    Update,
    fork_lineage,
    update_state,
)
from threadmark.state.threads.erasure import erase_in_thread
from threadmark.workers.tasks.erased_json import Erased

__all__ = ["compacting", "compaction_engine"]

SECRET = "Never write to CANARY-77120 at canary@secret.example."
#: Speaks of nothing that a fact could be made of: the message is all that there is to drop.
BARE = "hm"
ACTIONS = ("say", "say", "fork", "compact", "compact", "erase", "restore", "undo", "rewrite")


@dataclass
class Branching:
    """A thread with branches, and what happens to it. Every message that is said has words of its own."""

    work: Compacting
    thread_id: str
    chance: random.Random
    erased_words: list[str] = field(default_factory=list)
    committed: list[str] = field(default_factory=list)
    said: int = 0

    async def thread(self) -> Thread:
        """The thread as it is now."""
        return await self.work.seen(self.thread_id)

    async def do(self, action: str) -> None:
        """One of ACTIONS."""
        await getattr(self, f"_{action}")()

    async def check(self) -> None:
        """Every ledger verifies, and what was erased stands nowhere."""
        checks = await self.work.service.verify_thread(TENANT, self.thread_id)
        assert [each.damage for each in checks] == [None] * len(checks)
        shown = await self.work.text(self.thread_id)
        kept = await self.stored()
        for words in self.erased_words:
            assert words not in shown
            assert words.casefold() not in kept

    async def stored(self) -> str:
        """All that compaction keeps, of every thread."""
        found = []
        for name in ("compaction_row", "compaction_segment", "compaction_promotion", "compaction_analysis"):
            found.append(await self.work.store.read(partial(text_of_table, name=name)))
        return "".join(found).casefold()

    async def _say(self) -> None:
        self.said += 1
        ticket = f"{self.thread_id.upper()}-{self.said:03}"
        await self.work.say(self.thread_id, f"Ticket {ticket} costs ${self.said * 1000 + 7}.")

    async def _fork(self) -> None:
        thread = await self.thread()
        seq = await self._seq_of_an_ending(thread)
        await fork_after(self.work, thread, seq)

    async def _rewrite(self) -> None:
        """A person's message of before is written anew, under its id."""
        thread, states = await self.thread(), await self._human_ids()
        self.said += 1
        words = f"Instead it is {self.thread_id.upper()}-{self.said:03}, says nobody."
        written = StateUpdated(messages=(human(words, self.chance.choice(states)),))
        change = Update(thread=thread, entry=written, expected_seq=thread.head_seq)
        await self.work.store.write(partial(update_state, change=change, now_us=self.work.store.now_us()))

    async def _compact(self) -> None:
        done = await self.work.compact(self.thread_id, policy=self.chance.choice((POLICY, SPARE)))
        if done.status is CompactionStatus.COMMITTED:
            self.committed.append(done.compaction_id)

    async def _erase(self) -> None:
        """What one entry of any branch said, in the order of memory's erasures: compaction, then the journal."""
        thread = await self.thread()
        entries = [
            each
            for each in await self.work.store.entries(thread.number)
            if isinstance(each.entry, RunStarted | StateUpdated) and each.entry.messages
        ]
        chosen = self.chance.choice(entries)
        words = f"{self.thread_id.upper()}-"
        for message in chosen.entry.messages if isinstance(chosen.entry, RunStarted | StateUpdated) else ():
            self.erased_words += [each.strip(".,") for each in str(message.content).split() if words in each]
        await self.work.service.erase(TENANT, self.thread_id, [chosen.seq])
        await self.check()
        erased = Erased(seqs=[chosen.seq])
        await self.work.store.write(partial(erase_in_thread, thread=thread.number, rewrite=erased))

    async def _restore(self) -> None:
        if self.committed:
            await self.work.service.views.restore(TENANT, self.chance.choice(self.committed))

    async def _undo(self) -> None:
        shown = await self.work.service.views.show(TENANT, self.thread_id)
        loaded = await self.work.service.compactions.load(TENANT, self.thread_id)
        if shown.kept.cause == "restore" and shown.kept.view.view_id == loaded.current_view.view_id:
            await self.work.service.views.undo(TENANT, self.thread_id, shown.kept.view.view_id)

    async def _seq_of_an_ending(self, thread: Thread) -> int:
        loaded = await self.work.service.compactions.load(TENANT, self.thread_id)
        replies = {
            each.seq for each in await self.work.store.entries(thread.number) if isinstance(each.entry, ModelReplied)
        }
        return self.chance.choice([each.seq for each in loaded.entries if each.seq in replies])

    async def _human_ids(self) -> list[str]:
        loaded = await self.work.service.compactions.load(TENANT, self.thread_id)
        thread = await self.thread()
        known = {each.seq for each in loaded.entries if not each.erased and each.role == "human"}
        return [
            message.id
            for each in await self.work.store.entries(thread.number)
            if each.seq in known and isinstance(each.entry, RunStarted)
            for message in each.entry.messages
        ] or ["nobody"]


def text_of_table(connection: Connection, name: str) -> str:
    """All rows of a table."""
    return repr(connection.execute(select(METADATA.tables[name])).all())


async def fork_after(work: Compacting, thread: Thread, seq: int, text: str = "And on.") -> None:
    """A new branch that leaves the present one after the entry at `seq`, where a person goes on."""
    entries = {each.seq: each for each in await work.store.entries(thread.number)}
    leaves = await work.store.journal.read_leaves(thread.number)
    branch = 1 + max(leaves, default=0)
    at = Stretch(entries[seq].branch, seq)
    fork = Fork(branch=branch, parent=at.branch, fork_seq=seq, lineage=fork_lineage(leaves, at, branch))
    written = StateUpdated(messages=(human(text, f"fork-{branch}"),))
    change = Update(thread=thread, entry=written, expected_seq=thread.head_seq, fork=fork)
    await work.store.write(partial(update_state, change=change, now_us=work.store.now_us()))


async def play(compacting: Compacting, seed: int, actions: list[str]) -> None:
    """The actions in this order on a thread of their own, and a check after each."""
    compacting.turn_count += 1
    branching = Branching(compacting, f"t{compacting.turn_count}", random.Random(seed))
    await compacting.store.thread(branching.thread_id)
    for _ in range(4):
        await branching.do("say")
    for action in actions:
        await branching.do(action)
        await branching.check()


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), actions=st.lists(st.sampled_from(ACTIONS), min_size=4, max_size=12))
async def test_ledgers_verify_whatever_branch_an_erasure_is_asked_on(
    compacting: Compacting, seed: int, actions: list[str]
) -> None:
    """Turns, forks, rewritten messages, compactions, erasures and restores in any order."""
    await play(compacting, seed, actions)


@pytest.mark.soak
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), actions=st.lists(st.sampled_from(ACTIONS), min_size=4, max_size=24))
async def test_ledgers_verify_after_longer_histories(compacting: Compacting, seed: int, actions: list[str]) -> None:
    """The same, ten times as often, and twice as long."""
    await play(compacting, seed, actions)


async def secret_behind_a_fork(compacting: Compacting) -> tuple[int, int, str]:
    """A secret, compacted; then the thread goes on from before both. The secret's seq, the fork's, the compaction."""
    fork_seq = (await compacting.thread(turns=2)).head_seq - 1
    answer_seq = await compacting.say(text=SECRET)
    for _ in range(4):
        await compacting.say()
    done = await compacting.compact()
    assert done.status is CompactionStatus.COMMITTED
    await fork_after(compacting, await compacting.seen(), fork_seq)
    return answer_seq - 2, fork_seq, done.compaction_id


async def test_an_erasure_reaches_the_ledger_of_a_branch_that_was_left(compacting: Compacting) -> None:
    """Also after the journal has lost the words; the summary there is written again without them."""
    seq, _, compaction_id = await secret_behind_a_fork(compacting)
    thread = await compacting.seen()
    assert "canary" in await Branching(compacting, "thread-1", random.Random(0)).stored()

    counts = await compacting.service.erase(TENANT, "thread-1", [seq])
    erased = Erased(seqs=[seq])
    await compacting.store.write(partial(erase_in_thread, thread=thread.number, rewrite=erased))

    assert (counts.messages, counts.segments) == (1, 1)
    assert counts.rows > 0
    assert (await compacting.service.verify(TENANT, compaction_id)).damage is None
    assert "canary" not in await Branching(compacting, "thread-1", random.Random(0)).stored()


async def test_an_erasure_on_a_branch_that_was_left_leaves_the_present_view_alone(compacting: Compacting) -> None:
    """Its messages were never part of this branch: the summary that the model is sent stays."""
    seq, _, _ = await secret_behind_a_fork(compacting)
    for _ in range(4):
        await compacting.say()
    done = await compacting.compact()
    before = await compacting.text()
    assert "<compacted" in before

    await compacting.service.erase(TENANT, "thread-1", [seq])

    assert await compacting.text() == before
    assert (await compacting.service.views.show(TENANT, "thread-1")).kept.view.view_id == done.view_id


async def test_what_two_messages_said_is_gone_with_the_second(compacting: Compacting) -> None:
    """One erasure after the other: the row that both said loses its words with the last of them."""
    await compacting.thread(turns=2)
    seqs = [await compacting.say(text=f"{start} {SECRET}") - 2 for start in ("Mind this.", "And once more.")]
    for _ in range(3):
        await compacting.say()
    await compacting.compact(policy=SPARE)
    stored = Branching(compacting, "thread-1", random.Random(0)).stored

    await compacting.service.erase(TENANT, "thread-1", seqs[:1])
    assert "canary" in await stored()
    await compacting.service.erase(TENANT, "thread-1", seqs[1:])

    assert "canary" not in await stored()
    assert [each.damage for each in await compacting.service.verify_thread(TENANT, "thread-1")] == [None]


async def test_a_summary_made_during_an_erasure_is_made_again(compacting: Compacting) -> None:
    """The erasure came between the reading and the commit: nothing with the words is committed."""
    await compacting.thread(turns=2)
    seq = await compacting.say(text=SECRET) - 2
    for _ in range(3):
        await compacting.say()

    class Erasing(Recorder):
        async def summarise(self, prompt: SummaryPrompt) -> SummaryReply:
            if not self.prompts:
                await compacting.service.erase(TENANT, "thread-1", [seq])
            return await super().summarise(prompt)

    done = await compacting.compact(summariser=Erasing())

    assert done.status is CompactionStatus.COMMITTED
    assert "canary" not in await Branching(compacting, "thread-1", random.Random(0)).stored()
    assert "canary" not in (await compacting.text()).casefold()
    assert (await compacting.service.verify(TENANT, done.compaction_id)).damage is None


@pytest.mark.parametrize("erases", [False, True])
async def test_the_header_counts_what_the_ledger_counts(compacting: Compacting, erases: bool) -> None:
    """Every unit that was dropped, messages among them, also after an erasure; the receipt says the same."""
    await compacting.thread(turns=1)
    seq = await compacting.say(text=SECRET) - 2
    await compacting.say(text=BARE)
    for _ in range(4):
        await compacting.say()
    done = await compacting.compact(policy=msgspec.structs.replace(SPARE, summary_tokens=20))
    if erases:
        await compacting.service.erase(TENANT, "thread-1", [seq])
    ledger = await compacting.store.read(lambda connection: rows.read_rows(connection, done.compaction_id))
    gone = [row for row in ledger if row.status == "dropped"]
    critical = sum(row.critical for row in gone)

    assert {"message", "atom"} <= {row.unit for row in gone}
    assert f' dropped="{len(gone)}" critical_dropped="{critical}"' in await compacting.text()
    shown = await compacting.service.compactions.get(TENANT, done.compaction_id)
    assert sum(each.get("dropped", 0) for each in shown.totals.values()) == len(gone)
    assert shown.critical_dropped == critical
