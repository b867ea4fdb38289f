"""Claims: which run a worker takes, in which order, under which fence; and what becomes of the work of the dead."""

import asyncio

import pytest

from tests.conformance.store import ROUTES, Store
from tests.support.factories import replied
from threadmark.state import (
    Claim,
    Held,
    ParkReason,
    RunChanges,
    RunOutcome,
    RunStatus,
    StepIntended,
    StepKey,
    ThreadStatus,
    TurnStarted,
    heartbeat,
    next_due_us,
    own,
    read_inbox,
    release,
)
from threadmark.state.runs.claims import claim_run

SOON_US = 3_600_000_000


def released(**changes: object) -> RunChanges:
    """A turn lets its run go, unfinished."""
    values: dict[str, object] = {"status": RunStatus.PENDING, "thread_status": ThreadStatus.BUSY}
    return RunChanges(ending=RunOutcome(**values | changes))  # type: ignore[arg-type]


def settled(status: RunStatus = RunStatus.SUCCESS) -> RunChanges:
    """A turn ends its run."""
    return RunChanges(ending=RunOutcome(status=status, thread_status=ThreadStatus.IDLE))


async def test_runs_are_claimed_in_the_order_of_acceptance(store: Store) -> None:
    """First come, first served, a part at a time."""
    runs = [await store.accept(f"run {number}") for number in range(5)]

    first, rest = await store.claim(count_max=2), await store.claim()

    assert [each.run.run_id for each in first + rest] == [each.run_id for each in runs]


async def test_a_claim_gives_the_run_and_the_lease_of_its_thread(store: Store) -> None:
    """The run is running, its first turn is counted, the thread is owned and busy under a higher fence."""
    run = await store.accept("hello")

    (claimed,) = await store.claim()

    assert (claimed.run.status, claimed.run.attempts, claimed.answers) == (RunStatus.RUNNING, 1, ())
    assert (claimed.thread.owner, claimed.thread.fence) == ("worker-1", 1)
    assert (await store.seen(claimed.thread)).status is ThreadStatus.BUSY
    assert (await store.run(run)).status is RunStatus.RUNNING


async def test_a_thread_runs_one_run_at_a_time(store: Store) -> None:
    """The second run waits for the end of the first, whichever worker claims."""
    first = await store.accept("one")
    second = await store.accept("two", thread_id=first.thread_id)
    claimed, writer = await store.hold(first)
    assert await store.claim("worker-2") == []

    await store.begin(claimed, writer)
    await store.put(writer, move=settled())

    assert [each.run.run_id for each in await store.claim("worker-2")] == [second.run_id]


async def test_a_released_run_comes_before_the_later_runs_of_its_thread(store: Store) -> None:
    """Order is by acceptance: a run that is parked holds the runs behind it."""
    first = await store.accept("one")
    await store.accept("two", thread_id=first.thread_id)
    _, writer = await store.hold(first)
    await store.put(writer, move=released(parked=ParkReason.BACKOFF, due_at_us=store.now_us() + SOON_US))

    assert await store.claim() == []


async def test_no_run_is_claimed_twice(store: Store, other_store: Store) -> None:
    """Two processes, eight claims at once: each run has one claimer (F24)."""
    runs = [await store.accept(f"run {number}") for number in range(40)]
    for each in (store, other_store):
        for number in range(4):
            await each.register(f"worker-{number}-of-{'one' if each is store else 'other'}")

    claims = await asyncio.gather(
        *(
            each.claim(f"worker-{number}-of-{'one' if each is store else 'other'}", count_max=7)
            for number in range(4)
            for each in (store, other_store)
        )
    )

    taken = [each.run.run_id for batch in claims for each in batch]
    taken += [each.run.run_id for each in await store.claim("worker-last")]
    assert sorted(taken) == sorted(each.run_id for each in runs)


async def test_a_worker_takes_only_what_it_can_run(store: Store) -> None:
    """A run goes by its route: another worker's work is left alone, orphans too."""
    await store.accept("one", assistant="other")
    await store.accept("two", route="chat@2")

    assert await store.claim() == []
    assert [each.run.route for each in await store.claim(routes=["chat@2"])] == ["chat@2"]
    await store.bury_all()
    assert await store.claim("worker-2") == []
    assert [each.run.route for each in await store.claim("worker-2", routes=["chat@2"])] == ["chat@2"]


async def test_a_run_is_not_claimed_before_it_is_due(store: Store) -> None:
    """A delayed run waits for its time, and says how long that is."""
    assert await store.read(next_due_us) is None
    await store.accept("later", delay_us=SOON_US)
    assert await store.claim() == []

    left_us = await store.read(next_due_us)

    assert left_us is not None
    assert 0 < left_us <= SOON_US
    await store.accept("now")
    assert await store.read(next_due_us) == 0
    assert len(await store.claim()) == 1


async def test_tenants_take_turns(store: Store) -> None:
    """A tenant that floods the queue stands behind itself: another one's first run is the second to be served."""
    for number in range(10):
        await store.accept(f"flood {number}", tenant_id="loud")
    quiet = await store.accept("please", tenant_id="quiet")

    claims = [await store.claim(count_max=1) for _ in range(2)]

    assert quiet.run_id in [each.run.run_id for batch in claims for each in batch]


async def test_the_fence_rises_with_every_lease_and_with_nothing_else(store: Store) -> None:
    """A number is never given out again, so a late holder is always behind (I3)."""
    run = await store.accept("hello")
    fences = []
    for _ in range(4):
        claimed, writer = await store.hold(run)
        fences.append(claimed.thread.fence)
        await store.put(writer, TurnStarted(worker_id="w", attempt=claimed.run.attempts), move=released())

    assert fences == [1, 2, 3, 4]
    assert [each.fence for each in await store.entries(run.thread)] == fences


async def test_the_work_of_a_worker_whose_lease_ended_is_taken_over(store: Store) -> None:
    """Its runs are running and nobody takes turns of them; the next sweep of any worker finds them (I6)."""
    await store.register("worker-dead", ttl_s=-1)
    claimed, _ = await store.hold(await store.accept("hello"), "worker-dead")

    (taken,) = await store.claim("worker-2")

    assert (taken.run.run_id, taken.run.attempts, taken.run.orphaned) == (claimed.run.run_id, 2, 1)
    assert taken.thread.fence == claimed.thread.fence + 1
    assert taken.thread.owner == "worker-2"


async def test_the_work_of_a_live_worker_is_left_alone(store: Store) -> None:
    """However long its step takes: a heartbeat is enough."""
    await store.hold(await store.accept("hello"))

    assert await store.claim("worker-2") == []
    assert await store.write(lambda connection: heartbeat(connection, "worker-1", 60.0))
    assert await store.claim("worker-2") == []


async def test_a_buried_worker_s_heartbeat_is_refused(store: Store) -> None:
    """It learns that its threads belong to others, and starts afresh."""
    await store.register("worker-1")
    await store.bury_all()

    assert not await store.write(lambda connection: heartbeat(connection, "worker-1", 60.0))


async def test_a_buried_worker_s_runs_are_claimable_at_once(store: Store) -> None:
    """A deploy hands over without waiting for a lease to end."""
    claimed, _ = await store.hold(await store.accept("hello"))
    await store.bury_all()

    assert [each.run.run_id for each in await store.claim("worker-2")] == [claimed.run.run_id]


async def test_a_sweep_takes_over_no_more_orphans_than_it_may(store: Store) -> None:
    """A dead worker's load spreads over the living; what is due may be taken beside it."""
    for number in range(5):
        await store.accept(f"orphan {number}")
    await store.claim()
    await store.bury_all()
    due = await store.accept("due")

    claims = await store.claim("worker-2", orphan_count_max=2)

    assert sum(each.run.orphaned for each in claims) == 2
    assert due.run_id in [each.run.run_id for each in claims]


async def test_deaths_without_progress_in_between_are_counted(store: Store) -> None:
    """A run that kills its workers is known by it; one that gets further begins to count anew. Intents are none."""
    run = await store.accept("hello")
    claimed, writer = await store.hold(run)
    await store.begin(claimed, writer)
    counts = []
    for number in range(2, 6):
        await store.bury_all()
        (claimed,) = await store.claim(f"worker-{number}")
        counts.append(claimed.run.orphaned)
        intents = [StepIntended(step_key=StepKey(f"tool-1-{n}"), effect="keyed", idempotency_key="k") for n in range(3)]
        await store.put(store.writer(claimed), TurnStarted(worker_id="w", attempt=number), *intents)
    assert counts == [1, 2, 3, 4]

    writer = store.writer(await _taken_over(store, "worker-6"))
    await store.put(writer, replied())

    assert (await _taken_over(store, "worker-7")).run.orphaned == 1


async def _taken_over(store: Store, worker_id: str) -> Claim:
    await store.bury_all()
    (claimed,) = await store.claim(worker_id)
    return claimed


async def test_a_run_in_doubt_is_not_claimed(store: Store) -> None:
    """Nobody can move it but a person."""
    _, writer = await store.hold(await store.accept("hello"))
    await store.put(writer, move=released(parked=ParkReason.IN_DOUBT))

    assert await store.claim() == []


@pytest.mark.parametrize(("delay_us", "claimable"), [(-1, True), (SOON_US, False)])
async def test_a_run_that_backs_off_is_claimed_when_it_is_due(store: Store, delay_us: int, claimable: bool) -> None:
    """Until then it is a row."""
    run = await store.accept("hello")
    _, writer = await store.hold(run)
    await store.put(writer, move=released(parked=ParkReason.BACKOFF, due_at_us=store.now_us() + delay_us))
    assert (await store.run(run)).parked is ParkReason.BACKOFF

    claims = await store.claim()

    assert [each.run.parked for each in claims] == ([None] if claimable else [])


async def test_a_thread_is_given_back_by_its_holder_alone(store: Store) -> None:
    """A turn that broke off lets its thread go; one that was taken over meanwhile changes nothing."""
    claimed, _ = await store.hold(await store.accept("hello"))
    (held,) = await store.read(lambda connection: own(connection, "worker-1"))
    assert (held.run, held.thread, held.fence) == (claimed.run.number, claimed.thread.number, claimed.thread.fence)

    assert await store.write(lambda connection: release(connection, held, delay_us=0))
    assert await store.read(lambda connection: own(connection, "worker-1")) == []
    (again,) = await store.claim("worker-2")
    stale = Held(run=held.run, thread=held.thread, fence=held.fence, inbox=held.inbox)
    assert not await store.write(lambda connection: release(connection, stale, delay_us=0))
    assert (await store.run(again.run)).status is RunStatus.RUNNING


async def test_one_run_can_be_claimed_by_its_id(store: Store) -> None:
    """A doorbell names a run: it is taken if it may be taken, and nothing else instead."""
    first = await store.accept("one")
    second = await store.accept("two", thread_id=first.thread_id)
    await store.register()

    async def asked_for(run_id: str) -> bool:
        return await store.write(lambda connection: claim_run(connection, "worker-1", ROUTES, run_id)) is not None

    assert not await asked_for(second.run_id)
    assert not await asked_for("no such run")
    assert await asked_for(first.run_id)
    assert not await asked_for(first.run_id)


async def test_the_inbox_of_a_deleted_run_is_gone(store: Store) -> None:
    """The holder learns from it that it can stop."""
    claimed, _ = await store.begun()
    inbox = await store.read(lambda connection: read_inbox(connection, claimed.thread.number, claimed.run.number))
    assert inbox is not None
    assert inbox.run.run_id == claimed.run.run_id
    await store.delete(claimed.thread.thread_id)

    assert (
        await store.read(lambda connection: read_inbox(connection, claimed.thread.number, claimed.run.number)) is None
    )
