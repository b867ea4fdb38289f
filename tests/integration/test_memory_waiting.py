"""A question never waits for a write: its log entry is queued, bounded, written later, and counted when it is lost."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable
from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from tests.support.memory_house import HOME, NOW, draft, house, question, remembered
from tests.support.waiting import wait_until
from threadmark.memory import Database, EdgeIndex, Forget, Recollection, Scope, Unavailable
from threadmark.memory.erase import erasure_jobs, leftovers
from threadmark.memory.recall.recall_log import record_all
from threadmark.memory.recall.recall_log_queue import RecallLogQueue
from threadmark.memory.store.outbox import enqueue_again
from threadmark.memory.store.spaces import live
from threadmark.workers.supervisor import Supervisor


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Recollection]:
    """The embedded set."""
    async with house(f"sqlite:///{tmp_path}/memory.db", EdgeIndex(tmp_path / "index")) as opened:
        yield opened


class Held:
    """A writer that is busy until it is let go."""

    def __init__(self, database: Database) -> None:
        self._go_on, self._is_busy = threading.Event(), threading.Event()
        self._write: Awaitable[None] = asyncio.ensure_future(database.write(self._wait))

    async def begun(self) -> None:
        """Come back when the writer is busy."""
        await asyncio.to_thread(self._is_busy.wait, 30)

    async def let_go(self) -> None:
        """Let the writer go on, and wait for it."""
        self._go_on.set()
        await self._write

    def _wait(self, _: Connection) -> None:
        self._is_busy.set()
        self._go_on.wait(60)


async def test_recall_answers_while_the_writer_is_busy(memory: Recollection) -> None:
    """Nothing of a question goes through the writer, and what a run asked is listed all the same."""
    await remembered(memory, draft("The gate code is 4711."))
    busy = Held(memory._database)
    await busy.begun()
    try:
        async with asyncio.timeout(30):
            answers = await memory.recall(question("What is the gate code?", run_ref="run-1"))
            listed = await memory.recalls("run-1", tenant_id="acme")
    finally:
        await busy.let_go()

    assert answers.answers
    assert [each.recall_id for each in listed] == [answers.recall_id]
    await memory._recall_log.flush()
    assert await memory.recalls("run-1", tenant_id="acme") == listed
    assert not len(memory._recall_log)


async def test_a_full_queue_drops_and_counts(memory: Recollection) -> None:
    """The queue is bounded; what does not fit is lost to the log alone, and counted."""
    await remembered(memory, draft("The gate code is 4711."))
    answers = await memory.recall(question("What is the gate code?"))
    busy = Held(memory._database)
    await busy.begun()
    log = RecallLogQueue(memory._database, count_max=2)
    for _ in range(5):
        log.add(answers)
    await busy.let_go()
    await log.close()

    assert (log.dropped_count, len(log)) == (3, 0)


async def test_a_stop_writes_what_is_queued(tmp_path: Path) -> None:
    """A recall that was answered before an orderly stop is in the log afterwards."""
    url = f"sqlite:///{tmp_path}/memory.db"
    async with house(url, EdgeIndex(tmp_path / "index")) as memory:
        await remembered(memory, draft("The gate code is 4711."))
        answers = await memory.recall(question("What is the gate code?", run_ref="run-1"))
    async with house(url, EdgeIndex(tmp_path / "index")) as memory:
        (access,) = await memory.recalls("run-1", tenant_id="acme")

    assert access.recall_id == answers.recall_id


async def test_an_error_of_the_log_is_said_counted_and_tried_again(
    memory: Recollection, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Under the supervisor of its process: an outage loses nothing, and nothing else writes the log meanwhile."""
    await remembered(memory, draft("The gate code is 4711."))
    write, failed_count = memory._database.write, 0

    async def failing(unit: Any) -> Any:
        nonlocal failed_count
        if failed_count < 3 and getattr(unit, "func", None) is record_all:
            failed_count += 1
            raise Unavailable("the disk is full")
        return await write(unit)

    monkeypatch.setattr(memory._database, "write", failing)
    supervisor = Supervisor()
    loop = supervisor.start("memory recall log", lambda own: memory.keep_recall_log(own.completed), delay_s_max=0.05)
    await wait_until(lambda: loop.round_count, description="a round without recalls")
    try:
        for _ in range(2):
            await memory.recall(question("What is the gate code?", run_ref="run-1"))
        await wait_until(lambda: not len(memory._recall_log), description="the log to be written")
        await wait_until(lambda: loop.failure_count == 0, description="the end of the round")
    finally:
        await supervisor.stop(loop)

    assert (loop.error_count, failed_count, memory.dropped_recall_count) == (3, 3, 0)
    assert "memory recall log failed and is tried again in" in caplog.text
    assert "the disk is full" in caplog.text
    assert len(await memory.recalls("run-1", tenant_id="acme")) == 2


async def test_a_queued_recall_of_what_was_erased_is_not_written(memory: Recollection) -> None:
    """Also another process's queue, which the erasure cannot see, brings nothing back."""
    await remembered(memory, draft("Ada likes tea.", subject="Ada", attribute="drink", value="tea"))
    answers = await memory.recall(question("What does Ada like?", run_ref="run-1"))
    assert answers.answers
    await memory.erase(Forget(subject="Ada"), tenant_id="acme", now=NOW)

    elsewhere = RecallLogQueue(memory._database)
    elsewhere.add(answers)
    await elsewhere.close()

    assert await memory.recalls("run-1", tenant_id="acme") == []


async def test_retention_forgets_recalls_in_batches(memory: Recollection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every transaction of a sweep is bounded, and the sweep goes on until nothing old is left."""
    monkeypatch.setattr("threadmark.memory.recall.recall_log.FORGET_COUNT", 2)
    await remembered(memory, draft("The gate code is 4711.", scope=HOME))
    for _ in range(5):
        await memory.recall(question("What is the gate code?", run_ref="run-1"))
    await memory._recall_log.flush()
    counted: list[object] = []
    write = memory._database.write

    async def counting(unit: object) -> object:
        counted.append(getattr(unit, "func", unit))
        return await write(unit)  # type: ignore[arg-type]

    monkeypatch.setattr(memory._database, "write", counting)
    later = NOW + timedelta(days=1)
    await memory.sweep(now=later, recalls_before=later)

    assert await memory.recalls("run-1", tenant_id="acme") == []
    assert sum(getattr(each, "__name__", "") == "forget_before" for each in counted) == 4


async def test_an_erasure_ends_in_batches_and_counts_them_all(
    memory: Recollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recalls, locks and places go a few at a time, each batch a transaction of its own, counted exactly."""
    for name in ("BATCH_COUNT", "PLACE_COUNT", "PAGE_COUNT"):
        monkeypatch.setattr(f"threadmark.memory.erase.leftovers.{name}", 2)
    for at in range(5):
        scope = Scope(tenant_id="acme", namespace=("users", str(at)))
        drink = draft("Ada likes tea.", scope=scope, subject="Ada", attribute="drink", value="tea")
        await remembered(memory, drink, scope=scope)
        await memory.recall(question("What does Ada like?", scope=scope))
    names = ("attribute_locks", "namespaces", "recalls")
    steps: list[dict[str, int]] = [dict.fromkeys(names, 0)]
    write = memory._database.write

    async def watching(unit: Any) -> object:
        result = await write(unit)
        if getattr(unit, "func", None) in {leftovers.remove_batch, leftovers._forget_recalls}:
            job = partial(erasure_jobs.job, tenant_id="acme", erasure_id=unit.keywords["erasure_id"])
            counts = (await memory._database.read(job)).counts
            steps.append({name: counts.get(name, 0) for name in names})
        return result

    monkeypatch.setattr(memory._database, "write", watching)
    erasure = await memory.erase(Forget(namespace=("users",)), tenant_id="acme", now=NOW)

    assert {name: erasure.counts[name] for name in names} == steps[-1] == dict.fromkeys(names, 5)
    assert {after[name] - before[name] for before, after in pairwise(steps) for name in names} == {0, 1, 2}


async def test_a_repair_queues_its_differences_in_batches(
    memory: Recollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index that lost everything is not queued in one transaction."""
    monkeypatch.setattr("threadmark.memory.store.statements.ID_COUNT_MAX", 2)
    await remembered(memory, *(draft(f"Gate {at} is open.") for at in range(5)))
    for space in await memory._database.read(live):
        await memory._index.remove(space.name, [1, 2, 3, 4, 5])
    parts: list[int] = []
    write = memory._database.write

    async def watching(unit: Any) -> object:
        if getattr(unit, "func", None) is enqueue_again:
            parts.append(len(unit.keywords["numbers"]))
        return await write(unit)

    monkeypatch.setattr(memory._database, "write", watching)
    found = await memory.verify(repair=True)

    assert len(found.missing) == 5
    assert parts == [2, 2, 1]
    assert (await memory.verify()).agrees
