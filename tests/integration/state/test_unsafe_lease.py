"""A worker that could not renew its lease starts nothing; and a run whose turns break off is not tried for ever."""

import asyncio
import threading
from pathlib import Path

import pytest

from tests.conformance.store import Store
from tests.integration.state.stage import open_stage
from tests.integration.state.test_two_workers import settled, working
from tests.support.factories import Reply
from tests.support.waiting import wait_until
from threadmark.state import (
    FileLocks,
    Folded,
    ParkReason,
    RunSettled,
    RunStatus,
    StepIntended,
    Thread,
    TurnStarted,
    open_engine,
    redrive,
)
from threadmark.workers.agents.tools import Effect, tool
from threadmark.workers.fleet.lease import Lease
from threadmark.workers.fleet.worker import Pace, Worker
from threadmark.workers.turn import turn_failures
from threadmark.workers.turn.turn import Turn
from threadmark.workers.turn.turn_failures import BREAK_COUNT_MAX

DONE = Reply("All done.")
CALLING = [Reply("I act.", [("act", {})]), DONE]


@pytest.mark.parametrize("answers", [[], [True]], ids=["model", "tool"])
async def test_a_step_does_not_start_under_a_lease_that_is_not_safe(
    store: Store, tmp_path: Path, answers: list[bool]
) -> None:
    """What was recorded stays, no intent is left behind, and another worker starts the step at once."""
    calls: list[str] = []

    @tool(effect=Effect.ONCE)
    async def act() -> str:
        """Act."""
        calls.append("act")
        return "ok"

    async with open_stage(store, tmp_path, CALLING, [act]) as stage:
        run, asked_count = await stage.say(), len(answers)
        unsafe = Turn(stage.parts, await stage.claim(), stage.agent, is_safe=lambda: bool(answers) and answers.pop())
        await unsafe.take()

        assert (len(stage.model.requests), calls) == (asked_count, [])
        seen = await store.run(run)
        assert (seen.status, seen.parked) == (RunStatus.PENDING, None)
        assert (await store.thread(run.thread_id)).owner is None
        assert await stage.entries_of(run, StepIntended) == []
        assert (await stage.play_out(run)).status is RunStatus.SUCCESS
        assert (len(stage.model.requests), calls) == (2, ["act"])


async def test_a_worker_that_could_not_renew_starts_nothing_until_it_has(store: Store, tmp_path: Path) -> None:
    """Its heartbeats fail: the run under way is let go before its next step, and none is claimed; then all goes on."""
    reached, let_go, cut = asyncio.Event(), asyncio.Event(), threading.Event()
    calls: list[str] = []

    class Cut(FileLocks):
        """The way to the database of the lease is cut, and of nothing else."""

        def refresh(self, worker_id: str) -> None:
            if cut.is_set():
                raise OSError("no route to host")

    @tool(effect=Effect.PURE)
    async def act() -> str:
        """Wait until the lease is not safe any more."""
        calls.append("act")
        reached.set()
        await let_go.wait()
        return "ok"

    async with open_stage(store, tmp_path, CALLING, [act]) as stage:
        engine = open_engine(store.url, write=True, synchronous="NORMAL")
        locks = Cut(stage.parts.data_dir / "workers")
        lease = Lease(engine, locks, "worker-1", ttl_s=0.5, heartbeat_s=0.1)
        worker = Worker(stage.parts, stage.registry, lease, "worker-1", Pace(sweep_s=0.02, probe_s=0.02))
        await worker.start()
        run = await stage.say()
        await asyncio.wait_for(reached.wait(), 10)
        cut.set()
        await wait_until(lambda: not lease.is_safe, description="the lease to be unsafe")
        later = await stage.say("another")
        let_go.set()
        await wait_until(lambda: worker.turn_count == 0, description="the turn to be let go")
        assert (len(stage.model.requests), calls) == (1, ["act"])
        assert {(await store.run(each)).status for each in (run, later)} == {RunStatus.PENDING}

        cut.clear()
        await wait_until(settled(store, run, later), description="both runs to succeed", timeout_s=30)
        await worker.stop()
        engine.dispose()


@pytest.mark.parametrize("broken", ["step", "beginning"])
async def test_a_run_whose_turns_break_off_is_not_tried_for_ever(
    store: Store, tmp_path: Path, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bounded number of turns, each after a longer rest, with the last error in the run; then it is quarantined.

    It is settled as such where it can be; where even that breaks off it waits, whole, and an operator re-drives it.
    """
    monkeypatch.setattr(turn_failures, "FIRST_REST_S", 0.001)
    defects = [RuntimeError(f"defect {number}") for number in range(100)]

    async with open_stage(store, tmp_path, [DONE]) as stage:
        fold = stage.parts.journal.fold

        async def breaking(thread: Thread) -> Folded:
            if defects and broken == "beginning":
                raise defects.pop()
            return await fold(thread)

        async def no_reply(*_: object) -> object:
            raise defects.pop()

        stage.parts.journal.fold = breaking  # type: ignore[method-assign]
        if broken == "step":
            stage.model.reply = no_reply  # type: ignore[method-assign, assignment]
        async with working(stage, "worker-1"):
            run = await stage.say()

            async def is_quarantined() -> bool:
                seen = await store.run(run)
                return seen.reason == "quarantined" or seen.parked is ParkReason.QUARANTINED

            await wait_until(is_quarantined, description="the run to be quarantined", timeout_s=30)
            seen = await store.run(run)
            assert seen.failure is not None
            assert f"defect {len(defects)}" in seen.failure.message
            assert seen.attempts == BREAK_COUNT_MAX
            if broken == "step":
                assert (seen.status, seen.reason) == (RunStatus.ERROR, "quarantined")
                assert len(await stage.entries_of(run, RunSettled)) == 1
                assert len(await stage.entries_of(run, TurnStarted)) >= 1
                return
            assert seen.status is RunStatus.PENDING
            defects.clear()
            await store.write(lambda connection: redrive(connection, run.run_id, store.now_us()))
            await wait_until(settled(store, run), description="the run that was re-driven", timeout_s=30)
            assert [str(each.content) for each in await stage.messages(run)] == ["go", "All done."]
