"""Clocks that disagree: the database alone judges leases, so nobody steals, and nobody waits for longer (C16)."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.conformance.store import Store
from tests.integration.state.stage import Clock, open_stage
from tests.support.factories import Reply
from tests.support.waiting import wait_until
from threadmark.state import FileLocks, RunStatus, list_workers, open_engine
from threadmark.workers.agents.tools import Effect, tool
from threadmark.workers.fleet.lease import Lease
from threadmark.workers.fleet.worker import Pace, Worker

CALLING = [Reply("I act.", [("act", {})]), Reply("All done.")]
TWO_MINUTES = timedelta(minutes=2)
BEAT_COUNT = 30


@pytest.mark.parametrize("skew", [-TWO_MINUTES, TWO_MINUTES], ids=["behind", "ahead"])
async def test_a_worker_whose_clock_is_wrong_steals_nothing_and_takes_over_what_is_left(
    store: Store, tmp_path: Path, skew: timedelta
) -> None:
    """While the holder renews, many leases long, its run is left alone, though its own clock steps back too; when it
    renews no more the other one takes the run over, under a higher fence, and ends it.
    """
    began, let_go = asyncio.Event(), asyncio.Event()
    calls: list[str] = []

    @tool(effect=Effect.KEYED)
    async def act() -> str:
        """Hold the run at the first call."""
        calls.append("act")
        if len(calls) == 1:
            began.set()
            await let_go.wait()
        return "ok"

    async with open_stage(store, tmp_path, CALLING, [act]) as stage:
        engine = open_engine(store.url, write=True, synchronous="NORMAL")
        other_clock = Clock(began_at=stage.clock.began_at + skew)
        workers = []
        leases = []
        for name, clock in (("holder", stage.clock), ("other", other_clock)):
            # Folders of their own: no fallen lock tells, as from another host, and the lease alone decides.
            lease = Lease(engine, FileLocks(tmp_path / name), name, ttl_s=0.6, heartbeat_s=0.05)
            leases.append(lease)
            parts = replace(stage.parts, now=clock.now)
            workers.append(Worker(parts, stage.registry, lease, name, Pace(sweep_s=0.02, probe_s=0.02)))
        holder, other = workers
        await holder.start()
        run = await stage.say()
        await asyncio.wait_for(began.wait(), 10)
        await other.start()
        stage.clock.pass_s(-60)
        beats: set[float] = set()

        async def has_beaten() -> bool:
            seen = {each.worker_id: each.lease_left_s for each in await store.read(list_workers)}
            beats.add(seen["holder"])
            return len(beats) > BEAT_COUNT

        await wait_until(has_beaten, description="the holder to renew", timeout_s=30)
        assert (calls, (await store.thread(run.thread_id)).owner) == (["act"], "holder")

        leases[0]._ended.set()  # its heart stops, and nothing else: as of a host that hangs
        await wait_until(lambda: len(calls) == 2, description="the other one to take over", timeout_s=30)

        async def has_ended() -> bool:
            return (await store.run(run)).status is RunStatus.SUCCESS

        await wait_until(has_ended, description="the run to succeed", timeout_s=30)
        let_go.set()
        await wait_until(lambda: holder.turn_count == 0, description="the late holder to give up", timeout_s=30)
        entries = await store.entries(run.thread)
        assert [each.seq for each in entries] == list(range(1, len(entries) + 1))
        assert sum(each.kind == "tool_returned" for each in entries) == 1
        assert await store.journal.verify(await store.thread(run.thread_id)) == []
        for each in workers:
            await each.stop()
        engine.dispose()
