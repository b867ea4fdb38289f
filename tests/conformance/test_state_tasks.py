"""Tasks: one for each key, done by one worker at a time, taken up from the dead, and refused from the late."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection

from tests.conformance.store import Store
from tests.conformance.tasking import BROKEN, KINDS, SOON_US, a_task, added, claimed, held, seen
from threadmark.state import NotFound, RunChanges, RunOutcome, RunStatus, ThreadStatus, TurnStarted, new_id
from threadmark.state.errors import Conflict, LeaseLost
from threadmark.state.runs.claim_statements import SUSPECT_DEATH_COUNT
from threadmark.state.tasks.task_claims import (
    DEATH_COUNT_MAX,
    HeldTask,
    claim_suspect_task,
    claim_task,
    claim_tasks,
    fail_task,
    finish_task,
    has_suspect_task,
    next_task_us,
    own_tasks,
    release_task,
    report_task,
)
from threadmark.state.tasks.tasks import Task, TaskStatus, cancel_task, get_task, retry_task


async def test_a_key_is_one_task(store: Store, other_store: Store) -> None:
    """All requests, repeated or concurrent, get the same one; another tenant or kind has its own."""
    same = await asyncio.gather(*(added(each) for each in (store, other_store) for _ in range(8)))

    assert len({each.task_id for each in same}) == 1
    assert (same[0].status, same[0].payload, same[0].attempts) == (TaskStatus.PENDING, {"part": "one"}, 0)
    others = [await added(store, tenant_id="other"), await added(store, kind="paint"), await added(store, "two")]
    assert len({each.task_id for each in [*same, *others]}) == 4


async def test_a_task_that_is_done_is_not_added_again(store: Store) -> None:
    """The one that is there is the answer, with its result."""
    task = await added(store)
    (mine,) = await claimed(store)
    assert await store.write(partial(finish_task, held=held(mine), result={"mended": 1}))

    again = await added(store, payload={"part": "changed"})

    assert (again.task_id, again.status, again.result) == (task.task_id, TaskStatus.DONE, {"mended": 1})
    assert again.payload == {"part": "one"}
    assert await claimed(store) == []


@pytest.mark.parametrize("changes", [{"tenant_id": ""}, {"kind": ""}, {"key": ""}], ids=["tenant", "kind", "key"])
async def test_a_task_without_a_name_is_refused(store: Store, changes: dict[str, str]) -> None:
    """It would be everybody's."""
    with pytest.raises(ValueError, match="a tenant, a kind and a key"):
        await added(store, **{"key": "one", **changes})


async def test_a_task_of_a_turn_is_there_when_its_entry_is(store: Store) -> None:
    """One commit: an append that is refused leaves no task, one that is sent again leaves one."""
    work, writer = await store.hold(await store.accept("hello"))
    ending = RunOutcome(status=RunStatus.SUCCESS, thread_status=ThreadStatus.IDLE)
    late = store.writer(work)
    await store.put(
        writer, TurnStarted(worker_id="w", attempt=1), move=RunChanges(ending=ending, tasks=(a_task("end"),))
    )
    with pytest.raises(LeaseLost):
        await store.put(late, TurnStarted(worker_id="v", attempt=1), move=RunChanges(tasks=(a_task("late"),)))

    assert [each.key for each in await claimed(store)] == ["end"]


async def test_no_task_is_claimed_twice(store: Store, other_store: Store) -> None:
    """Two processes, eight claims at once: each task has one owner, in the order in which they were due."""
    tasks = [await added(store, f"task {number}", due_at_us=number) for number in range(30)]

    batches = await asyncio.gather(
        *(claimed(each, f"worker-{each is store}-{number}", 5) for number in range(4) for each in (store, other_store))
    )

    taken = [each.number for batch in batches for each in batch]
    taken += [each.number for each in await claimed(store, "worker-last")]
    assert sorted(taken) == [each.number for each in tasks]
    assert all(batch == sorted(batch, key=lambda task: task.number) for batch in batches)


async def test_a_worker_claims_what_it_can_do_and_what_is_due(store: Store) -> None:
    """Another kind is left alone; a later time is waited for, and reported."""
    waits = partial(next_task_us, kinds=KINDS)
    await added(store, kind="paint")
    assert await store.read(waits) is None
    later = await added(store, "later", due_at_us=store.now_us() + SOON_US)

    assert await claimed(store) == []
    left_us = await store.read(waits)
    assert left_us is not None
    assert 0 < left_us <= SOON_US
    assert await store.write(lambda connection: claim_task(connection, "worker-1", KINDS, later.task_id)) is None
    now = await added(store, "now")
    assert await store.read(waits) == 0
    taken = await store.write(lambda connection: claim_task(connection, "worker-1", KINDS, now.task_id))
    assert taken is not None
    assert (taken.status, taken.owner, taken.attempts, taken.fence) == (TaskStatus.RUNNING, "worker-1", 1, 1)


async def test_what_a_dead_worker_was_at_is_taken_up(store: Store) -> None:
    """Its lease is over: the next one goes on from what was reported, and the late end is refused."""
    await store.register("worker-dead", ttl_s=-1)
    await added(store)
    (lost,) = await store.write(lambda connection: claim_tasks(connection, "worker-dead", KINDS, 9))
    assert await store.write(partial(report_task, held=held(lost), progress={"done": 3}))
    assert await store.read(partial(next_task_us, kinds=KINDS)) == 0

    (taken,) = await claimed(store, "worker-2")

    assert (taken.progress, taken.attempts, taken.deaths, taken.fence) == ({"done": 3}, 2, 1, lost.fence + 1)
    assert not await store.write(partial(finish_task, held=held(lost), result="late"))
    assert not await store.write(partial(report_task, held=held(lost), progress="late"))
    assert not await store.write(partial(fail_task, held=held(lost), failure=BROKEN, retry_in_us=None))
    assert not await store.write(partial(release_task, held=held(lost)))
    assert await store.write(partial(finish_task, held=held(taken), result="ok"))
    assert (await seen(store, taken)).result == "ok"


async def test_what_a_live_worker_is_at_is_left_alone(store: Store) -> None:
    """However long it takes; the worker itself knows what it owns."""
    await added(store)
    (mine,) = await claimed(store)

    assert await claimed(store, "worker-2") == []
    assert await store.read(partial(next_task_us, kinds=KINDS)) is None
    assert await store.read(partial(own_tasks, worker_id="worker-1")) == [held(mine)]


async def suspect(store: Store, worker_id: str) -> list[Task]:
    """What a worker that does nothing else has claimed of the tasks at which workers died repeatedly."""
    await store.alive(worker_id)
    found = await store.write(lambda connection: claim_suspect_task(connection, worker_id, KINDS))
    return [] if found is None else [found]


async def die(store: Store, report: Callable[[HeldTask], Any] | None = None) -> Task | None:
    """One more worker claims, perhaps reports, and dies."""
    worker_id = f"worker-{new_id(store.now_us())}"
    tasks = await claimed(store, worker_id) or await suspect(store, worker_id)
    if tasks and report is not None:
        await store.write(lambda connection: report_task(connection, held(tasks[0]), report(held(tasks[0]))))
    await store.bury_all()
    return tasks[0] if tasks else None


async def test_a_task_that_kills_its_workers_is_set_aside(store: Store) -> None:
    """After so many deaths in a row nobody is sent any more, whatever the doomed say again and again."""
    task = await added(store)
    for _ in range(DEATH_COUNT_MAX):
        assert await die(store, lambda _: "begun") is not None

    assert await die(store) is None

    failed = await seen(store, task)
    assert (failed.status, failed.owner) == (TaskStatus.FAILED, None)
    assert failed.failure is not None
    assert failed.failure.error == "Quarantined"


async def test_the_neighbours_of_a_killer_are_tried_one_at_a_time(store: Store) -> None:
    """Workers died at two tasks together: which of them is to blame shows only where each is alone in its worker."""
    both = [await added(store, key) for key in ("killer", "innocent")]
    for number in range(SUSPECT_DEATH_COUNT + 1):
        assert await store.read(partial(has_suspect_task, kinds=KINDS)) is False
        assert len(await claimed(store, f"dead-{number}")) == 2
        await store.bury_all()

    assert await store.read(partial(has_suspect_task, kinds=KINDS)) is True
    assert await store.read(partial(has_suspect_task, kinds=("paint",))) is False
    assert await store.read(partial(next_task_us, kinds=KINDS)) is None
    assert await claimed(store, "worker-1") == []
    (first,) = await suspect(store, "worker-1")
    (second,) = await suspect(store, "worker-2")
    assert await suspect(store, "worker-3") == []

    assert [each.task_id for each in (first, second)] == [each.task_id for each in both]
    assert first.deaths == SUSPECT_DEATH_COUNT + 1
    assert await store.write(partial(report_task, held=held(second), progress="further"))
    await store.bury_all()
    (ordinary,) = await claimed(store, "worker-4")
    assert (ordinary.task_id, ordinary.deaths) == (second.task_id, 1)


async def test_a_task_that_gets_further_is_never_set_aside(store: Store) -> None:
    """A long one outlives any number of deaths."""
    await added(store)
    for _ in range(DEATH_COUNT_MAX * 2):
        assert await die(store, lambda task: task.fence) is not None

    (taken,) = await claimed(store)
    assert taken.deaths == 1


async def test_a_failed_attempt_is_tried_again_when_it_is_due(store: Store) -> None:
    """The reason is kept, also when a later attempt succeeds; a stop is no failure."""
    task = await added(store)
    (first,) = await claimed(store)
    assert await store.write(partial(fail_task, held=held(first), failure=BROKEN, retry_in_us=SOON_US))
    parked = await seen(store, task)
    assert (parked.status, parked.failures, parked.failure) == (TaskStatus.PENDING, 1, BROKEN)
    assert parked.due_at_us > store.now_us()
    assert await claimed(store) == []

    await store.write(lambda connection: cancel_task(connection, task.task_id))
    await store.write(lambda connection: retry_task(connection, task.task_id))
    (second,) = await claimed(store)
    assert await store.write(partial(release_task, held=held(second)))
    (third,) = await claimed(store)
    assert (third.attempts, third.failures, third.failure) == (3, 0, BROKEN)


async def test_an_operator_retries_what_failed_for_good(store: Store) -> None:
    """It is due at once, under the same id; what is running or done is not retried."""
    task = await added(store)
    (mine,) = await claimed(store)
    with pytest.raises(Conflict, match="is running; only a failed or cancelled task can be retried"):
        await store.write(partial(retry_task, task_id=task.task_id))
    assert await store.write(partial(fail_task, held=held(mine), failure=BROKEN, retry_in_us=None))
    assert await claimed(store) == []

    await store.write(partial(retry_task, task_id=task.task_id))

    (again,) = await claimed(store)
    assert (again.task_id, again.failures, again.attempts) == (task.task_id, 0, 2)


async def test_a_cancelled_task_ends_at_once(store: Store) -> None:
    """A worker that is at it owns nothing any more; what it ends with is refused. One that is done stays done."""
    task = await added(store)
    (mine,) = await claimed(store)

    cancelled = await store.write(partial(cancel_task, task_id=task.task_id))

    assert cancelled.status is TaskStatus.CANCELLED
    assert await store.read(partial(own_tasks, worker_id="worker-1")) == []
    assert not await store.write(partial(finish_task, held=held(mine), result="late"))
    assert (await store.write(partial(cancel_task, task_id=task.task_id))).fence == cancelled.fence
    await added(store, "two")
    (other,) = await claimed(store)
    await store.write(partial(finish_task, held=held(other), result=None))
    with pytest.raises(Conflict, match="is done; there is nothing to cancel"):
        await store.write(partial(cancel_task, task_id=other.task_id))


@pytest.mark.parametrize("verb", [cancel_task, retry_task, get_task], ids=["cancel", "retry", "get"])
async def test_a_made_up_task_is_not_found(store: Store, verb: Callable[[Connection, str], Task]) -> None:
    """No verb brings one about."""
    with pytest.raises(NotFound, match="Task with ID nobody not found"):
        await store.write(lambda connection: verb(connection, "nobody"))
