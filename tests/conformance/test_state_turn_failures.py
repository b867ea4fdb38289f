"""Turns that break off: counted, rested, quarantined, and re-driven, on both databases."""

import pytest

from tests.conformance.store import Store
from tests.support.factories import replied
from threadmark.state import (
    Claim,
    Conflict,
    Failure,
    NotFound,
    ParkReason,
    Run,
    RunStatus,
    ThreadStatus,
    own,
    redrive,
    release,
)

FAILURE = Failure("RuntimeError", "a defect")
HOUR_US = 3_600_000_000


async def break_off(store: Store, claimed: Claim, rest_us: int | None) -> list[int]:
    """The turn breaks off, and its run rests; which counts were asked about."""
    asked: list[int] = []

    def back_off(count: int) -> int | None:
        asked.append(count)
        return rest_us

    (held,) = await store.read(lambda connection: own(connection, str(claimed.thread.owner)))
    assert await store.write(lambda connection: release(connection, held, failure=FAILURE, back_off=back_off))
    return asked


async def claimed(store: Store) -> Claim:
    """The one run that is due."""
    (found,) = await store.claim()
    return found


async def redriven(store: Store, run: Run) -> Run:
    """The run after an operator let it go on."""
    return await store.write(lambda connection: redrive(connection, run.run_id, store.now_us()))


async def test_a_run_rests_after_a_turn_that_broke_off_and_says_why(store: Store) -> None:
    """It is pending, parked as broken, with the error; nobody claims it before its time."""
    run = await store.accept("hello")

    assert await break_off(store, await claimed(store), HOUR_US) == [1]

    seen = await store.run(run)
    assert (seen.status, seen.parked, seen.failure) == (RunStatus.PENDING, ParkReason.BROKEN, FAILURE)
    assert await store.claim() == []


async def test_breaks_without_progress_are_counted_and_progress_begins_anew(store: Store) -> None:
    """The same count as for workers that die: whatever ends a turn, a run that gets no further is found out."""
    run = await store.accept("hello")
    counts = [await break_off(store, await claimed(store), 0) for _ in range(3)]
    assert counts == [[1], [2], [3]]

    found = await claimed(store)
    writer = store.writer(found)
    await store.begin(found, writer)
    await store.put(writer, replied())

    assert await break_off(store, found, 0) == [1]
    assert (await store.run(run)).orphaned == 1


async def test_a_quarantined_run_waits_for_an_operator(store: Store) -> None:
    """Nobody claims it, its thread shows the error; re-driven it is due at once and counts anew."""
    run = await store.accept("hello")
    await break_off(store, await claimed(store), None)
    assert (await store.run(run)).parked is ParkReason.QUARANTINED
    thread = await store.thread(run.thread_id)
    assert (thread.status, thread.failure) == (ThreadStatus.ERROR, FAILURE)
    assert await store.claim() == []

    again = await redriven(store, run)

    assert (again.parked, again.orphaned) == (None, 0)
    assert (await claimed(store)).run.run_id == run.run_id


async def test_only_a_run_that_broke_off_is_re_driven(store: Store) -> None:
    """Another one is refused with a sentence, and one that is not there is not found."""
    run = await store.accept("hello")

    with pytest.raises(Conflict, match="neither broken nor quarantined"):
        await redriven(store, run)
    with pytest.raises(NotFound):
        await store.write(lambda connection: redrive(connection, "no such run", 0))
    assert len(await store.claim()) == 1


async def test_a_turn_that_nobody_is_to_blame_for_is_not_counted(store: Store) -> None:
    """The database was away: the run is due again after a moment, and shows nothing."""
    run = await store.accept("hello")
    found = await claimed(store)
    (held,) = await store.read(lambda connection: own(connection, str(found.thread.owner)))

    assert await store.write(lambda connection: release(connection, held, delay_us=0))

    seen = await store.run(run)
    assert (seen.status, seen.parked, seen.failure, seen.orphaned) == (RunStatus.PENDING, None, None, 0)
