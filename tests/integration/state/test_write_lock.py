"""SQLite's one write lock, held for longer than a lease: who only waits for it is spared, and who is frozen is not."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, select

from tests.conformance.store import ROUTES, Store
from tests.integration.state.stage import open_stage
from tests.support.factories import Reply
from tests.support.waiting import wait_until
from threadmark.state import Claim, FileLocks, claim, open_engine, tables
from threadmark.state.entries.instants import database_now_us
from threadmark.workers.fleet.lease import Lease

TTL_S = 1.0
LEASE = select((tables.worker.c.lease_until - database_now_us()) / 1_000_000)
FREEZING = "tests.support.lease_holder"


def left_s(connection: Connection, worker_id: str) -> float:
    """For how long its lease lasts, by the database."""
    return float(connection.execute(LEASE.where(tables.worker.c.worker_id == worker_id)).scalar_one())


async def ended(store: Store, worker_id: str) -> None:
    """Wait until its lease has."""

    async def has_ended() -> bool:
        return await store.read(lambda connection: left_s(connection, worker_id)) < -TTL_S

    await wait_until(has_ended, description="the lease to end twice over", timeout_s=20)


def claim_for(lease: Lease, connection: Connection, worker_id: str) -> list[Claim]:
    """What that worker claims, as workers do."""
    return lease.sparing(lambda unit: claim(unit, worker_id, ROUTES, 4))(connection)


@asynccontextmanager
async def freezing(store: Store, folder: Path, worker_id: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process of its own that has this worker's lease."""
    arguments = ["-m", FREEZING, store.url, str(folder), worker_id, str(TTL_S)]
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert (await asyncio.wait_for(process.stdout.readline(), 30)).strip() == b"enrolled"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.fixture
def engine(store: Store) -> Engine:
    """One more connection that writes."""
    return open_engine(store.url, write=True, synchronous="NORMAL")


async def test_a_worker_that_waits_for_the_write_lock_is_not_taken_over(
    store: Store, tmp_path: Path, engine: Engine
) -> None:
    """The lock is held for leases on end, and the first to have it is another worker that looks for orphans."""
    lost: list[str] = []
    async with open_stage(store, tmp_path, [Reply("Done.")]) as stage:
        folder = tmp_path / "workers"
        mine, other = (
            Lease(engine, FileLocks(folder), name, ttl_s=TTL_S, heartbeat_s=TTL_S / 10) for name in ("mine", "other")
        )
        await asyncio.to_thread(mine.begin, "{}", lambda: lost.append("mine"))
        run = await stage.say()
        (held,) = await store.write(lambda connection: claim_for(mine, connection, "mine"))
        assert held.run.run_id == run.run_id

        with engine.begin() as connection:
            await ended(store, "mine")
            assert mine.is_safe
            assert claim_for(other, connection, "other") == []
            assert left_s(connection, "mine") > 0

        # And where the lock falls to the worker itself first: nobody has taken anything, so nothing is lost.
        with engine.begin():
            await ended(store, "mine")

        async def is_renewed() -> bool:
            return await store.read(lambda connection: left_s(connection, "mine")) > 0

        await wait_until(is_renewed, description="the lease to be renewed", timeout_s=20)
        thread = await store.thread(run.thread_id)
        assert (lost, mine.is_safe, thread.owner, thread.fence) == ([], True, "mine", held.thread.fence)
        await asyncio.to_thread(mine.end)
    engine.dispose()


@pytest.mark.parametrize("fate", [signal.SIGSTOP, signal.SIGKILL], ids=["frozen", "killed"])
async def test_a_worker_that_stands_still_meanwhile_is_taken_over(
    store: Store, tmp_path: Path, engine: Engine, fate: signal.Signals
) -> None:
    """It does not beat, and is spared by nobody; when it wakes it knows that it was replaced."""
    folder = tmp_path / "workers"
    async with open_stage(store, tmp_path, [Reply("Done.")]) as stage, freezing(store, folder, "still") as process:
        other = Lease(engine, FileLocks(folder), "other", ttl_s=TTL_S, heartbeat_s=TTL_S / 10)
        run = await stage.say()
        (held,) = await store.write(lambda connection: claim(connection, "still", ROUTES, 4))
        with engine.begin() as connection:
            os.kill(process.pid, fate)
            if fate == signal.SIGKILL:
                await process.wait()
            since = time.monotonic()
            await ended(store, "still")
            # What it said last is still to come where it had just said it.
            await wait_until(lambda: time.monotonic() > since + TTL_S, description="its last beat to be old")
            (taken,) = claim_for(other, connection, "other")
        assert (taken.run.run_id, taken.was_orphan) == (run.run_id, True)
        assert taken.thread.fence == held.thread.fence + 1
        if fate == signal.SIGSTOP:
            process.send_signal(signal.SIGCONT)
            assert process.stdout is not None
            assert (await asyncio.wait_for(process.stdout.readline(), 30)).strip() == b"lost"
    engine.dispose()
