"""One SQLite file and several processes: no caller gets "database is locked", and no count is lost (C44)."""

import asyncio
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from sqlalchemy import Connection, text

from tests.conformance.store import Store
from tests.integration.state.writers import count_up

PROCESS_COUNT = 3
TASK_COUNT = 3
ROUND_COUNT = 15
#: What a log of a file that is checkpointed stays below, whatever is written.
WAL_BYTES_MAX = 16 * 1024 * 1024


async def test_processes_that_read_and_then_write_one_file_wait_for_each_other(store: Store, tmp_path: Path) -> None:
    """A deferred transaction that has read first would be refused at once, whatever its busy time-out says."""
    thread = await store.thread("counted", count=0)
    let_go = threading.Event()

    def hold_a_snapshot(connection: Connection) -> int:
        before = connection.execute(text("SELECT count(*) FROM thread")).scalar_one()
        assert let_go.wait(60)
        return int(connection.execute(text("SELECT count(*) FROM thread")).scalar_one() - before)

    reading = asyncio.create_task(store.read(hold_a_snapshot))
    loop = asyncio.get_running_loop()
    with ProcessPoolExecutor(PROCESS_COUNT, mp_context=get_context("spawn")) as pool:
        counting = [
            loop.run_in_executor(pool, count_up, store.url, "counted", ROUND_COUNT, TASK_COUNT)
            for _ in range(PROCESS_COUNT)
        ]
        commits = await asyncio.gather(*counting)
    let_go.set()

    assert await reading == 0
    assert (await store.seen(thread)).metadata["count"] == PROCESS_COUNT * TASK_COUNT * ROUND_COUNT
    assert sum(commits) <= PROCESS_COUNT * TASK_COUNT * ROUND_COUNT
    await store.thread("one more")
    assert _wal_size(tmp_path) < WAL_BYTES_MAX


async def test_a_write_waits_for_another_process_that_holds_the_file(store: Store, url: str) -> None:
    """It waits as long as the other transaction takes; the caller notices nothing."""
    other = Store.open(url)
    entered, let_go = threading.Event(), threading.Event()

    def hold_the_file(_connection: Connection) -> None:
        entered.set()
        assert let_go.wait(10)

    holding = asyncio.create_task(other.write(hold_the_file))
    await asyncio.to_thread(entered.wait, 10)
    writing = asyncio.create_task(store.thread("waits"))
    done, _ = await asyncio.wait([writing], timeout=0.05)
    assert not done

    let_go.set()

    assert (await writing).thread_id == "waits"
    await holding
    await other.database.close()


def _wal_size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*-wal"))
