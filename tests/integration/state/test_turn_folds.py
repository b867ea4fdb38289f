"""Turns and the folds they leave: the next turn of a thread reads what is new, and who lost the lease leaves none."""

import asyncio
from dataclasses import replace
from pathlib import Path

from tests.conformance.store import Store
from tests.integration.state.stage import Stage, open_stage
from tests.support.factories import Reply
from threadmark.state import Journal, Run
from threadmark.workers.agents.tools import Effect, tool

ACTING = Reply("I act.", [("act", {})])
DONE = Reply("All done.")


@tool(effect=Effect.PURE)
async def act() -> str:
    """Do something."""
    return "ok"


def elsewhere(stage: Stage) -> Stage:
    """The same deployment in another process, which has folds of its own."""
    return replace(stage, parts=replace(stage.parts, journal=Journal(stage.store.database)))


async def reads_of_a_turn(stage: Stage, run: Run) -> int:
    """Say something on the run's thread, and count the queries of the turn that answers."""
    await stage.say(thread_id=run.thread_id)
    turn = await stage.turn()
    count = stage.store.database.read_count
    await turn.take()
    return stage.store.database.read_count - count


async def test_a_turn_reads_nothing_that_its_process_has_folded(store: Store, tmp_path: Path) -> None:
    """However long the thread is. Another process reads once, what it does not have."""
    async with open_stage(store, tmp_path, [ACTING, DONE] * 9, [act]) as stage:
        first = await stage.play_out(await stage.say())
        assert [await reads_of_a_turn(stage, first) for _ in range(4)] == [0, 0, 0, 0]

        other = elsewhere(stage)
        assert [await reads_of_a_turn(other, first) for _ in range(2)] == [1, 0]
        assert [await reads_of_a_turn(stage, first) for _ in range(2)] == [1, 0]
        await stage.state(first)


async def test_a_turn_that_lost_its_lease_leaves_no_fold(store: Store, tmp_path: Path) -> None:
    """What it noted last is in no journal: its successor's entries stand there."""
    reached, go = asyncio.Event(), asyncio.Event()

    @tool(effect=Effect.PURE)
    async def dawdle() -> str:
        """Take long enough for the lease to be lost."""
        reached.set()
        await go.wait()
        return "late"

    async with open_stage(store, tmp_path, [Reply("I act.", [("dawdle", {})]), DONE, DONE], [dawdle]) as stage:
        run = await stage.say()
        late = asyncio.create_task((await stage.turn()).take())
        await reached.wait()
        successor = await elsewhere(stage).turn()
        go.set()
        await late
        assert stage.parts.journal.fold_cache.numbers == []

        await successor.take()
        assert (await stage.state(run)).next is None
