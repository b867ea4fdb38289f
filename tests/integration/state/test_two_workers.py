"""Workers: several on one database, turns that break off, and a worker that stops in the middle of its work."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conformance.store import Store
from tests.integration.state.stage import Stage, open_stage
from tests.support.factories import Reply
from tests.support.waiting import wait_until
from threadmark.state import FileLocks, Folded, Run, RunStatus, Thread, open_engine
from threadmark.workers.agents.tool_context import ToolContext
from threadmark.workers.agents.tools import Effect, tool
from threadmark.workers.fleet import housekeeping
from threadmark.workers.fleet.lease import Lease
from threadmark.workers.fleet.worker import Pace, Worker

DONE = Reply("All done.")
CALLING = [Reply("I act.", [("act", {})]), DONE]
RUN_COUNT = 40


@asynccontextmanager
async def working(
    stage: Stage, name: str, tidy: Callable[[], Awaitable[None]] | None = None, **pace: float
) -> AsyncIterator[Worker]:
    """A worker at this stage, which looks for work without being asked."""
    engine = open_engine(stage.store.url, write=True, synchronous="NORMAL")
    lease = Lease(engine, FileLocks(stage.parts.data_dir / "workers"), name, ttl_s=30.0, heartbeat_s=5.0)
    options = {"sweep_s": 0.02, "probe_s": 0.02, "grace_s": 5.0} | pace
    worker = Worker(stage.parts, stage.registry, lease, name, Pace(**options), tidy=tidy)  # type: ignore[arg-type]
    await worker.start()
    try:
        yield worker
    finally:
        await worker.stop()
        engine.dispose()


def settled(store: Store, *runs: Run) -> Callable[[], object]:
    """Whether all of the runs have succeeded."""

    async def are_settled() -> bool:
        return all([(await store.run(run)).status is RunStatus.SUCCESS for run in runs])

    return are_settled


async def test_two_workers_on_one_database_take_no_run_twice(store: Store, tmp_path: Path) -> None:
    """Each run has one turn, each effect happens once, whichever worker was faster."""
    done: Counter[str] = Counter()

    @tool(effect=Effect.ONCE)
    async def act(context: ToolContext) -> str:
        """Count."""
        done[context.run_id] += 1
        return "ok"

    other = Store.open(store.url)
    async with open_stage(store, tmp_path, CALLING, [act]) as stage:
        parts = replace(stage.parts, database=other.database, journal=other.journal)
        there = replace(stage, store=other, parts=parts)
        async with working(stage, "worker-1"), working(there, "worker-2"):
            runs = [await stage.say(f"run {number}") for number in range(RUN_COUNT)]
            await wait_until(settled(store, *runs), description="all runs to succeed", timeout_s=30)

        assert done == Counter({run.run_id: 1 for run in runs})
        assert {(await store.run(run)).attempts for run in runs} == {1}
        assert [run.run_id for run in runs if len(await stage.messages(run)) != 4] == []
    await other.database.close()


@pytest.mark.parametrize("accident", [RuntimeError("a defect"), asyncio.CancelledError()], ids=["raised", "cancelled"])
async def test_a_turn_that_broke_off_is_taken_up_again_by_a_worker_that_lives(
    store: Store, tmp_path: Path, accident: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """No sweep of another worker would find its run: the owner of the thread is alive."""
    accidents = [accident]

    async with open_stage(store, tmp_path, [DONE]) as stage:
        fold = stage.parts.journal.fold

        async def breaking(thread: Thread) -> Folded:
            if accidents:
                raise accidents.pop()
            return await fold(thread)

        stage.parts.journal.fold = breaking  # type: ignore[method-assign]
        async with working(stage, "worker-1"):
            run = await stage.say()
            await wait_until(settled(store, run), description="the run to succeed")

        assert (await store.run(run)).attempts == 2


async def test_housekeeping_that_takes_its_time_holds_up_no_claim(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine it takes seconds: what a dead worker held would wait for as long."""
    begun = asyncio.Event()

    async def forever() -> None:
        begun.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(housekeeping, "FIRST_S", 0.0)
    async with open_stage(store, tmp_path, [DONE]) as stage, working(stage, "worker-1", tidy=forever):
        await asyncio.wait_for(begun.wait(), 30)
        run = await stage.say()
        await wait_until(settled(store, run), description="the run to succeed", timeout_s=30)


async def test_a_worker_that_stops_lets_go_of_what_it_could_not_finish(store: Store, tmp_path: Path) -> None:
    """Another one carries on at once, without waiting for a lease to end; the key of the effect stays the same."""
    keys: list[str] = []
    started = asyncio.Event()

    @tool(effect=Effect.KEYED)
    async def act(context: ToolContext) -> str:
        """Hang in the first attempt."""
        keys.append(context.idempotency_key)
        if len(keys) == 1:
            started.set()
            await asyncio.Event().wait()
        return "ok"

    async with open_stage(store, tmp_path, CALLING, [act]) as stage:
        async with working(stage, "worker-1", grace_s=0.01):
            run = await stage.say()
            await asyncio.wait_for(started.wait(), 10)
        assert (await store.run(run)).status is RunStatus.PENDING
        async with working(stage, "worker-2"):
            await wait_until(settled(store, run), description="the run to succeed")

        assert len(keys) == 2
        assert len(set(keys)) == 1


async def test_a_worker_takes_no_more_turns_than_it_may(store: Store, tmp_path: Path) -> None:
    """The rest waits in the queue, and comes when there is room."""
    running, most, let_go = 0, 0, asyncio.Event()

    @tool(effect=Effect.PURE)
    async def act() -> str:
        """Count who is here."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        await let_go.wait()
        running -= 1
        return "ok"

    async with open_stage(store, tmp_path, CALLING, [act]) as stage:
        async with working(stage, "worker-1", turn_count_max=3) as worker:
            runs = [await stage.say(f"run {number}") for number in range(8)]
            await wait_until(lambda: running == 3, description="three turns")
            assert worker.turn_count == 3
            let_go.set()
            await wait_until(settled(store, *runs), description="all runs to succeed")

        assert most == 3


async def test_a_sleeping_run_is_woken_when_it_is_due(store: Store, tmp_path: Path) -> None:
    """A delayed run needs no doorbell: the worker sleeps until the next due time, and no longer than its sweep."""
    async with open_stage(store, tmp_path, [DONE]) as stage, working(stage, "worker-1", sweep_s=5.0) as worker:
        run = await stage.say(delay_us=150_000)
        worker.notify()

        await wait_until(settled(store, run), description="the delayed run", timeout_s=4)
