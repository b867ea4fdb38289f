"""Background tasks in a worker: woken, done once, tried again, cut short by a stop or a cancellation."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.store import Store
from tests.integration.state.stage import Stage, open_stage
from tests.support.factories import TENANT
from tests.support.waiting import wait_until
from threadmark.state import FileLocks, migrate, open_engine
from threadmark.state.runs.claim_statements import SUSPECT_DEATH_COUNT
from threadmark.state.tasks.task_claims import HeldTask, claim_tasks, report_task
from threadmark.state.tasks.tasks import NewTask, Task, TaskStatus, add_task, cancel_task, get_task, list_tasks
from threadmark.workers.agents.tools import NonRetryable, RetryAfter
from threadmark.workers.fleet.lease import Lease
from threadmark.workers.fleet.task_runner import TaskRunner
from threadmark.workers.fleet.worker import Pace, Worker
from threadmark.workers.supervisor import Supervisor
from threadmark.workers.tasks.task_context import Handler, TaskContext

NEVER_S = 3_600.0


@asynccontextmanager
async def working(
    stage: Stage,
    handlers: Mapping[str, Handler],
    name: str = "worker-1",
    *,
    sweep_s: float = 0.02,
    count_max: int = 4,
    supervisor: Supervisor | None = None,
) -> AsyncIterator[Worker]:
    """A worker at this stage that can do these kinds of tasks."""
    engine = open_engine(stage.store.url, write=True, synchronous="NORMAL")
    lease = Lease(engine, FileLocks(stage.parts.data_dir / "workers"), name, ttl_s=30.0, heartbeat_s=5.0)
    task_runner = TaskRunner(
        stage.parts.database,
        lease,
        name,
        handlers,
        sweep_s=sweep_s,
        count_max=count_max,
        supervisor=supervisor,
        bell=stage.parts.task_signal,
    )
    worker = Worker(stage.parts, stage.registry, lease, name, Pace(sweep_s=sweep_s, probe_s=0.02), task_runner)
    await worker.start()
    try:
        yield worker
    finally:
        await worker.stop()
        engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    """A desk over a fresh database, of each kind in turn."""
    url = f"sqlite:///{tmp_path / 'state.db'}"
    if request.param == "postgresql":
        url = str(request.getfixturevalue("postgres_url"))
    engine = open_engine(url, write=True)
    migrate(engine)
    engine.dispose()
    store = Store.open(url)
    async with open_stage(store, tmp_path, []) as stage:
        yield stage
    await store.database.close()


async def added(stage: Stage, key: str = "one", **changes: Any) -> Task:
    """A task that nobody rang for."""
    new = NewTask(**{"tenant_id": TENANT, "kind": "mend", "key": key, "payload": {"part": key}} | changes)
    return await stage.store.write(lambda connection: add_task(connection, new, stage.store.now_us()))


async def becomes(stage: Stage, task: Task, status: TaskStatus) -> Task:
    """The task, once it has the status."""

    async def has_it() -> Task | None:
        found = await stage.store.read(partial(get_task, task_id=task.task_id))
        return found if found.status is status else None

    return await wait_until(has_it, description=f"the task to be {status}", timeout_s=30) or task


async def test_a_task_is_done_and_its_result_kept(stage: Stage) -> None:
    """The handler is given the task; what it reports and returns is there for everybody."""

    async def mend(task: Task, context: TaskContext) -> dict[str, Any]:
        await context.report({"mended": 1})
        return {"part": task.payload["part"], "attempt": task.attempts}

    task = await added(stage)
    async with working(stage, {"mend": mend}):
        done = await becomes(stage, task, TaskStatus.DONE)

    assert (done.result, done.progress, done.owner) == ({"part": "one", "attempt": 1}, {"mended": 1}, None)


async def test_a_ring_is_enough(stage: Stage) -> None:
    """No sweep comes here: the doorbell alone wakes the worker, and by the id as a job does."""

    async def mend(task: Task, _: TaskContext) -> str:
        return task.key

    async with working(stage, {"mend": mend}, sweep_s=NEVER_S) as worker:
        one = await added(stage, "one")
        worker.task_runner.notify()
        await becomes(stage, one, TaskStatus.DONE)
        two = await added(stage, "two")
        assert await worker.task_runner.take(two.task_id)
        await becomes(stage, two, TaskStatus.DONE)


async def test_many_tasks_are_done_a_few_at_a_time(stage: Stage) -> None:
    """Each once, and never more at a time than the worker has room for."""
    done: list[str] = []
    now: set[str] = set()
    most = 0

    async def mend(task: Task, context: TaskContext) -> None:
        nonlocal most
        now.add(task.key)
        most = max(most, len(now))
        await context.report(task.key)
        now.discard(task.key)
        done.append(task.key)

    tasks = [await added(stage, f"{number}") for number in range(20)]
    async with working(stage, {"mend": mend}, count_max=3):
        for each in tasks:
            await becomes(stage, each, TaskStatus.DONE)

    assert sorted(done) == sorted(each.key for each in tasks)
    assert 1 < most <= 3


async def test_a_failure_is_tried_again_and_a_hopeless_one_is_not(stage: Stage) -> None:
    """RetryAfter names the time, NonRetryable says that there is none, and what cannot be kept is a failure too."""

    async def mend(task: Task, _: TaskContext) -> object:
        if task.key == "hopeless":
            raise NonRetryable("the part is gone")
        if task.key == "odd":
            return object()
        if task.failures < 2:
            raise RetryAfter(0.01)
        return "ok"

    tasks = {key: await added(stage, key) for key in ("later", "hopeless", "odd")}
    async with working(stage, {"mend": mend}):
        later = await becomes(stage, tasks["later"], TaskStatus.DONE)
        hopeless = await becomes(stage, tasks["hopeless"], TaskStatus.FAILED)

        async def has_failed() -> Task | None:
            found = await stage.store.read(partial(get_task, task_id=tasks["odd"].task_id))
            return found if found.failures else None

        odd = await wait_until(has_failed, description="the odd result to be refused")

    assert (later.attempts, later.failures, later.result) == (3, 2, "ok")
    assert hopeless.failure is not None
    assert (hopeless.attempts, hopeless.failure.error, hopeless.failure.message) == (
        1,
        "NonRetryable",
        "the part is gone",
    )
    assert odd is not None
    assert odd.failure is not None
    assert (odd.status, odd.failure.error) == (TaskStatus.PENDING, "TypeError")
    assert odd.due_at_us > stage.store.now_us()


async def test_a_stop_gives_back_at_once_and_is_no_failure(stage: Stage) -> None:
    """The next worker goes on from what was reported."""
    held = asyncio.Event()

    async def hold(task: Task, context: TaskContext) -> Any:
        if task.progress is not None:
            return task.progress
        await context.report("half")
        held.set()
        return await asyncio.Event().wait()

    task = await added(stage)
    async with working(stage, {"mend": hold}):
        await asyncio.wait_for(held.wait(), 30)
    (back,) = await stage.store.read(partial(list_tasks, count_max=9))
    assert (back.status, back.owner, back.failures, back.deaths) == (TaskStatus.PENDING, None, 0, 0)

    async with working(stage, {"mend": hold}, "worker-2"):
        done = await becomes(stage, task, TaskStatus.DONE)
    assert (done.result, done.attempts) == ("half", 2)


async def test_a_cancelled_task_is_cut_short(stage: Stage) -> None:
    """Its handler ends at the next sweep, and the worker goes on with others."""
    held, ended = asyncio.Event(), asyncio.Event()

    async def mend(task: Task, _: TaskContext) -> None:
        if task.key == "long":
            held.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

    task = await added(stage, "long")
    async with working(stage, {"mend": mend}, count_max=1):
        await asyncio.wait_for(held.wait(), 30)
        await stage.store.write(partial(cancel_task, task_id=task.task_id))
        await asyncio.wait_for(ended.wait(), 30)
        await becomes(stage, await added(stage, "short"), TaskStatus.DONE)

    assert (await becomes(stage, task, TaskStatus.CANCELLED)).failure is None


async def test_a_kind_that_nobody_can_do_waits(stage: Stage) -> None:
    """For a deploy that brings its handler; others are not held up by it."""

    async def mend(_: Task, __: TaskContext) -> None:
        return None

    painted = await added(stage, "wall", kind="paint")
    async with working(stage, {"mend": mend}):
        await becomes(stage, await added(stage), TaskStatus.DONE)
    assert (await becomes(stage, painted, TaskStatus.PENDING)).attempts == 0

    async with working(stage, {"paint": mend}, "worker-2"):
        await becomes(stage, painted, TaskStatus.DONE)


async def test_a_task_at_which_workers_died_is_alone_in_its_worker_until_it_has_progressed(stage: Stage) -> None:
    """A death beside it would otherwise count against its neighbours too."""
    at: list[str] = []
    may_report, may_end = asyncio.Event(), asyncio.Event()

    async def mend(task: Task, context: TaskContext) -> None:
        at.append(task.key)
        if task.key == "suspect":
            await context.report("begun")  # as the attempts before it did
            await may_report.wait()
            await context.report("further")
        await may_end.wait()

    suspect = await added(stage, "suspect")
    for number in range(SUSPECT_DEATH_COUNT + 1):
        await stage.store.alive(f"dead-{number}")
        (lost,) = await stage.store.write(partial(claim_tasks, worker_id=f"dead-{number}", kinds=["mend"], count_max=1))
        lost_task = HeldTask(number=lost.number, task_id=lost.task_id, fence=lost.fence)
        if number == 0:
            await stage.store.write(partial(report_task, held=lost_task, progress="begun"))
        await stage.store.bury_all()

    supervisor = Supervisor()
    async with working(stage, {"mend": mend}, supervisor=supervisor):
        await wait_until(lambda: at == ["suspect"], description="the suspect to be at work")
        beside = await added(stage, "beside")
        (before,) = [each.round_count for each in supervisor.reports() if each.name == "task sweep"]
        await wait_until(
            lambda: any(each.round_count > before + 3 for each in supervisor.reports() if each.name == "task sweep"),
            description="the worker to look for tasks again",
        )
        assert at == ["suspect"]
        may_report.set()
        await wait_until(lambda: at == ["suspect", "beside"], description="the neighbour to be at work")
        may_end.set()
        await becomes(stage, suspect, TaskStatus.DONE)
        await becomes(stage, beside, TaskStatus.DONE)


async def test_a_trial_ends_with_its_task(stage: Stage) -> None:
    """Also where nothing was reported: the worker takes other tasks again."""

    async def mend(_: Task, __: TaskContext) -> str:
        return "mended"

    suspect = await added(stage, "suspect")
    for number in range(SUSPECT_DEATH_COUNT + 1):
        await stage.store.alive(f"dead-{number}")
        await stage.store.write(partial(claim_tasks, worker_id=f"dead-{number}", kinds=["mend"], count_max=1))
        await stage.store.bury_all()
    beside = await added(stage, "beside")

    async with working(stage, {"mend": mend}):
        await becomes(stage, suspect, TaskStatus.DONE)
        await becomes(stage, beside, TaskStatus.DONE)
