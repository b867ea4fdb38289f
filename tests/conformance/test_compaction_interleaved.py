"""Appends and compactions at the same time: nothing is lost, and nothing is there twice."""

import asyncio
import random

import pytest

from tests.conformance.compacting import Compacting, compacting, compaction_engine
from tests.support.bad_summarisers import Recorder
from tests.support.factories import TENANT
from threadmark.compaction import Live, Masked, Role, Summary

__all__ = ["compacting", "compaction_engine"]

TURNS_OF_A_THREAD = 8


async def account(work: Compacting, thread_id: str) -> None:
    """Assert that every message is in the view exactly once: as it is, as a stub, or in one summary."""
    loaded = await work.service.compactions.load(TENANT, thread_id)
    counts = dict.fromkeys((entry.seq for entry in loaded.entries), 0)
    head = max(counts, default=0)
    for item in loaded.view.view.items:
        match item:
            case Live(first, last):
                seqs = [seq for seq in counts if first <= seq <= (head if last is None else last)]
            case Masked(seq):
                seqs = [seq]
            case Summary(segment_id):
                seqs = list(loaded.segments[segment_id].covered)
            case _:
                seqs = []
        for seq in seqs:
            counts[seq] += 1
    assert set(counts.values()) <= {1}
    order = [entry.position for entry in loaded.entries]
    assert order == sorted(order)
    assert sum(entry.role is Role.HUMAN for entry in loaded.entries) == sum(
        entry.role is Role.AI for entry in loaded.entries
    )


async def interleave(work: Compacting, thread_id: str, chance: random.Random) -> int:
    """One compaction, and turns that come at any moment of it; how many turns came."""
    turns = chance.randint(1, 2)

    async def say() -> None:
        for _ in range(turns):
            for _ in range(chance.randint(0, 40)):
                await asyncio.sleep(0)
            await work.say(thread_id)

    summariser = Recorder() if chance.random() < 0.5 else None
    order = work.order()
    saying = asyncio.create_task(say())
    begun, _ = await work.service.compactions.begin(TENANT, thread_id, order)
    done = await work.service.compactions.perform(begun.compaction_id, holder="me", summariser=summariser)
    await saying
    while done.is_open:
        done = await work.service.compactions.perform(begun.compaction_id, holder="me", summariser=summariser)
    return turns


@pytest.mark.parametrize("count", [40, pytest.param(1_000, marks=pytest.mark.soak)])
async def test_turns_that_come_while_a_compaction_runs_are_there_once(compacting: Compacting, count: int) -> None:
    """Whatever order the two take: each message is shown or covered exactly once, in the order of the journal."""
    chance = random.Random(20_261_129)
    thread_id, said = "", TURNS_OF_A_THREAD
    for number in range(count):
        if said >= TURNS_OF_A_THREAD:
            thread_id, said = f"thread-{number}", 2
            await compacting.thread(2, thread_id)
        said += await interleave(compacting, thread_id, chance)
        await account(compacting, thread_id)
