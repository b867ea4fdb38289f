"""What must hold of a thread, whatever was done to it: of its journal, the fold that is kept, its runs and waits."""

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.conformance.store import Store
from threadmark.state import (
    SETTLED,
    FoldCache,
    RunStatus,
    Thread,
    ThreadState,
    ThreadStatus,
    ToolReturned,
    fold,
    fold_thread,
    list_waits,
    visible,
)
from threadmark.workers.models import to_openai

__all__ = ["Rules"]


@dataclass
class Rules:
    """The rules, and what may not change any more: how runs have settled, and what people have answered."""

    store: Store
    settled: dict[str, RunStatus] = field(default_factory=dict)
    answered: dict[str, Any] = field(default_factory=dict)

    async def check(self, thread: Thread, fold_cache: FoldCache) -> None:
        """Raise AssertionError where one does not hold."""
        entries = await self.store.entries(thread.number)
        seen = list(visible(entries, thread.lineage))
        state = fold(seen)
        kept = fold_cache.find(thread)
        folded = await self.store.read(partial(fold_thread, thread=thread, base=kept))
        assert (folded.state, folded.head_digest) == (state, thread.head_digest)
        assert folded.run_index == (await self.store.read(partial(fold_thread, thread=thread))).run_index
        assert await self.store.journal.verify(thread) == []
        assert [each.seq for each in entries] == list(range(1, thread.head_seq + 1))
        assert [each.fence for each in entries] == sorted(each.fence for each in entries)
        # The id of the message names execution and step.
        results = Counter(each.entry.message_id for each in seen if isinstance(each.entry, ToolReturned))
        assert [step for step, count in results.items() if count > 1] == []
        if not state.open_calls:
            to_openai("", state.messages)
        await self._check_rows(thread, state)

    async def _check_rows(self, thread: Thread, state: ThreadState) -> None:
        runs, waits = (
            await self.store.runs(thread.number),
            await self.store.read(partial(list_waits, thread=thread.number)),
        )
        assert sum(run.status is RunStatus.RUNNING for run in runs) <= 1
        for run in runs:
            assert self.settled.get(run.run_id, run.status) is run.status
            if run.status in SETTLED:
                self.settled[run.run_id] = run.status
        for wait in waits:
            if wait.wait_id in self.answered:
                assert (wait.status, wait.answer) == ("answered", self.answered[wait.wait_id])
        if not [run for run in runs if run.status not in SETTLED]:
            # Nobody moves the thread: what the journal asks is what a person can answer.
            still_open = {wait.wait_id for wait in waits if wait.status == "open"}
            on_their_way = {wait.wait_id for wait in waits if wait.status == "answered"}
            asked = {call.wait_id for call in state.open_waits}
            assert still_open <= asked
            assert asked <= still_open | on_their_way
            assert thread.status is not ThreadStatus.BUSY
