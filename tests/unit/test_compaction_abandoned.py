"""Compactions and searches of drops end at their next step when their caller is gone."""

from collections.abc import Iterator, Mapping
from functools import partial

import pytest

from tests.support.abandoned_work import HeldSteps, abandon
from tests.support.compaction_threads import PLANTED, Thread, talk
from threadmark.compaction.drops.drop_search import DropQuery, recall_dropped
from threadmark.compaction.input.source import Position, SourceEntry
from threadmark.compaction.pools import COMPACTING, RANKING
from threadmark.compaction.run.executor import compact_in_executor
from threadmark.compaction.run.plan import Plan, plan_compaction
from threadmark.compaction.run.proposal import CompactionRequest, Proposal
from threadmark.compaction.summary import estimate_tokens


def new_request(thread: Thread) -> CompactionRequest:
    """A compaction of the thread that writes a summary."""
    plan = plan_compaction(thread.situation(), thread.policy)
    assert isinstance(plan, Plan)
    assert plan.needs_summary
    return thread.request(plan)


async def compact_counting(steps: HeldSteps) -> object:
    """Compact a thread of 25 turns beside the loop; each count of tokens is a step."""

    def count(text: str) -> int:
        steps.take()
        return estimate_tokens(text)

    thread = Thread(talk(25, 3, planted=PLANTED))
    return await compact_in_executor(new_request(thread), thread.analyses, None, count)


async def test_an_abandoned_compaction_counts_no_further_text() -> None:
    """It counts tokens from the first draft to the last line; the count during which its caller leaves is the last."""
    whole = HeldSteps(nth=0)
    assert isinstance(await compact_counting(whole), Proposal)
    assert whole.count > 10

    steps = HeldSteps(nth=3)
    await abandon(compact_counting(steps), steps, COMPACTING)

    assert steps.count == 3


class CountedEntries(Mapping[Position, SourceEntry]):
    """Entries by position; each look-up of one is a step."""

    def __init__(self, entries: Mapping[Position, SourceEntry], steps: HeldSteps) -> None:
        self._entries, self._steps = entries, steps

    def __getitem__(self, position: Position) -> SourceEntry:
        self._steps.take()
        return self._entries[position]

    def __iter__(self) -> Iterator[Position]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


@pytest.mark.parametrize("text", ["", "which server answered?"], ids=["a list", "a search"])
async def test_an_abandoned_search_of_drops_looks_up_no_further_row(text: str) -> None:
    """A thread has thousands of rows, and a search looks each of them up; a list does so for each answer."""
    thread = Thread(talk(25, 3))
    proposal = await thread.compact()
    assert isinstance(proposal, Proposal)
    entries = {entry.position: entry for entry in thread.entries}
    query = DropQuery(text=text, limit=50, budget_tokens=100_000)

    def search(steps: HeldSteps) -> object:
        return recall_dropped(proposal.ledger.rows, CountedEntries(entries, steps), query)

    whole = HeldSteps(nth=0)
    search(whole)
    assert whole.count > 40

    steps = HeldSteps(nth=3)
    await abandon(RANKING.run(partial(search, steps)), steps, RANKING)

    assert steps.count == 3
