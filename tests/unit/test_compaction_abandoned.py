"""Compactions and searches of drops end at their next step when their caller is gone."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pkgutil import resolve_name
from typing import Any

import pytest

from tests.support.abandoned_work import HeldSteps, abandon
from tests.support.compaction_threads import PLANTED, Thread, talk
from threadmark.compaction.atoms import atom_extraction
from threadmark.compaction.drops.drop_search import DropQuery, recall_dropped
from threadmark.compaction.input.analysis import Analyses
from threadmark.compaction.input.source import Position, SourceEntry
from threadmark.compaction.model.plan import Plan
from threadmark.compaction.pools import COMPACTING, RANKING
from threadmark.compaction.run.executor import compact_in_executor
from threadmark.compaction.run.planning import plan_compaction
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


@pytest.mark.parametrize(
    "step",
    [
        "input.analysis.guess_language",
        "input.analysis.sentences",
        "input.analysis.extract_clauses",
        "ledger.collect._add_message",
        "ledger.evidence.Evidence._index",
        "ledger.evidence.Evidence.atom",
        "ledger.evidence.Evidence.clause",
        "ledger.outcomes._whole",
        "ledger.account._row",
        "ledger.seal.content_digest",
        "ledger.seal._persistent",
    ],
)
async def test_an_abandoned_compaction_works_on_no_further_text_or_unit(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long thread has thousands between two counts of tokens: the one at which its caller leaves is the last."""
    steps = HeldSteps(nth=0)
    dotted = f"threadmark.compaction.{step}"
    real: Callable[..., Any] = resolve_name(dotted)

    def taken(*args: object, **kwargs: object) -> Any:
        steps.take()
        return real(*args, **kwargs)

    monkeypatch.setattr(dotted, taken)
    thread = Thread(talk(25, 3, planted=PLANTED))

    async def compacted() -> object:
        return await compact_in_executor(new_request(thread), Analyses(), None, estimate_tokens)

    assert isinstance(await compacted(), Proposal)
    assert steps.count > 10

    steps = HeldSteps(nth=3)
    await abandon(compacted(), steps, COMPACTING)

    assert steps.count == 3


async def test_an_abandoned_compaction_runs_no_further_finder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each finder goes over all texts of a batch before the next one begins."""
    steps = HeldSteps(nth=3)
    monkeypatch.setattr(atom_extraction, "FINDERS", (lambda _: steps.take(), *atom_extraction.FINDERS))
    thread = Thread(talk(25, 3, planted=PLANTED))

    await abandon(compact_in_executor(new_request(thread), Analyses(), None, estimate_tokens), steps, COMPACTING)

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
