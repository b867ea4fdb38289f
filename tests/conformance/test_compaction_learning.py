"""What a thread said is analysed once: ahead of a compaction, kept by content, and gone with the words."""

import asyncio
from dataclasses import replace

import pytest
from sqlalchemy import select

from tests.conformance.compacting import Compacting, compacting, compaction_engine
from tests.support.factories import TENANT
from threadmark.compaction import tables
from threadmark.compaction.input import analysis
from threadmark.compaction.input.source import SourceEntry
from threadmark.compaction.loading import prior_analysis
from threadmark.compaction.store import ledger_rows
from threadmark.state import Folded, Thread

__all__ = ["compacting", "compaction_engine"]

SECRET = "Never write to albatross@example.org again."


@pytest.fixture
def analysed(monkeypatch: pytest.MonkeyPatch) -> list[SourceEntry]:
    """Every entry that is analysed from now on, however often."""
    seen: list[SourceEntry] = []
    make = analysis.analyse_all

    def watched(entries: list[SourceEntry]) -> list[tuple[analysis.PartAnalysis, ...]]:
        seen.extend(entries)
        return make(entries)

    monkeypatch.setattr(analysis, "analyse_all", watched)
    monkeypatch.setattr(prior_analysis, "analyse_all", watched)
    return seen


async def read(work: Compacting) -> tuple[Thread, Folded]:
    """The thread as it is now."""
    thread = await work.seen()
    return thread, await work.store.journal.fold(thread)


async def kept(work: Compacting) -> dict[str, bytes]:
    """All that is kept of the thread's messages, by key, raw."""
    found = await work.store.read(lambda connection: connection.execute(select(tables.analysis)).all())
    return {row.key: bytes(row.found) for row in found}


async def test_what_was_learnt_is_not_analysed_again(compacting: Compacting, analysed: list[SourceEntry]) -> None:
    """Not by another look, not by a compaction, not by the next one: each message is read once."""
    await compacting.thread(turns=6)
    learnt = await compacting.service.learn(*await read(compacting))
    assert (learnt.analysed, learnt.known, learnt.total) == (12, 0, 12)
    assert len(analysed) == 12

    again = await compacting.service.learn(*await read(compacting))
    first = await compacting.compact()
    for _ in range(3):
        await compacting.say()
    more = await compacting.service.learn(*await read(compacting))
    second = await compacting.compact()

    assert (again.analysed, again.known) == (0, 12)
    assert {first.status, second.status} == {"committed"}
    assert (more.analysed, more.known) == (6, 12)
    assert len(analysed) == 18


async def test_a_compaction_analyses_and_keeps_what_nobody_learnt(
    compacting: Compacting, analysed: list[SourceEntry]
) -> None:
    """Without the task everything works as before, and the next one to look finds it known."""
    await compacting.thread(turns=6)
    await compacting.compact()

    assert len(analysed) == 12
    assert (await compacting.service.learn(*await read(compacting))).analysed == 0


async def secret_seq(work: Compacting) -> int:
    """Where the secret stands."""
    loaded = await work.service.compactions.load(TENANT, "thread-1")
    (secret,) = [entry for entry in loaded.entries if entry.text() == SECRET]
    return secret.seq


async def keeps_secret(work: Compacting) -> bool:
    """Whether any analysis has the secret word."""
    return any(b"albatross" in found for found in (await kept(work)).values())


async def test_words_that_were_erased_are_in_no_analysis(compacting: Compacting) -> None:
    """Neither those that were kept before the erasure nor those of somebody who had read the journal before it."""
    await compacting.thread(turns=2)
    await compacting.say(text=SECRET)
    before = await read(compacting)
    await compacting.service.learn(*before)
    assert await keeps_secret(compacting)

    await compacting.service.erase(TENANT, "thread-1", [await secret_seq(compacting)])

    assert await kept(compacting) == {}
    late = await compacting.service.learn(*before)
    assert (late.analysed, await keeps_secret(compacting)) == (5, False)


async def test_an_erasure_while_the_words_are_analysed_wins(
    compacting: Compacting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The analysis is made of words that are gone when it is to be kept: nothing of it is."""
    await compacting.thread(turns=2)
    await compacting.say(text=SECRET)
    before, seq, loop = await read(compacting), await secret_seq(compacting), asyncio.get_running_loop()
    make = analysis.analyse_all

    def erased_meanwhile(entries: list[SourceEntry]) -> list[tuple[analysis.PartAnalysis, ...]]:
        erasing = compacting.service.erase(TENANT, "thread-1", [seq])
        asyncio.run_coroutine_threadsafe(erasing, loop).result()
        return make(entries)

    monkeypatch.setattr(prior_analysis, "analyse_all", erased_meanwhile)

    late = await compacting.service.learn(*before)

    assert (late.is_stale, late.analysed, await kept(compacting)) == (True, 0, {})


async def test_of_a_thread_that_is_gone_nothing_is_kept(compacting: Compacting) -> None:
    """Deleted while it was read: there is nothing to keep it with. With a thread's rows go its analyses."""
    await compacting.thread(turns=2)
    thread, folded = await read(compacting)

    late = await compacting.service.learn(replace(thread, number=thread.number + 1_000), folded)

    assert (late.is_stale, await kept(compacting)) == (True, {})
    await compacting.service.learn(thread, folded)
    await compacting.delete()
    assert await kept(compacting) == {}


async def test_another_extractors_findings_are_replaced(
    compacting: Compacting, monkeypatch: pytest.MonkeyPatch, analysed: list[SourceEntry]
) -> None:
    """Its keys are other ones: they are not read, and go when there is something to put in their place."""
    await compacting.thread(turns=2)
    monkeypatch.setattr(ledger_rows, "_OURS", "old:")
    monkeypatch.setattr(analysis, "EXTRACTOR_VERSION", "old")
    await compacting.service.learn(*await read(compacting))
    assert {key.split(":")[0] for key in await kept(compacting)} == {"old"}
    monkeypatch.undo()

    learnt = await compacting.service.learn(*await read(compacting))

    assert (learnt.known, learnt.analysed) == (0, 4)
    assert "old" not in {key.split(":")[0] for key in await kept(compacting)}
    assert len(await kept(compacting)) == 4
