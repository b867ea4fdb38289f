"""Claiming a run by its id follows the rules of every claim, on both databases."""

import asyncio

from tests.conformance.store import ROUTES, WORKER, Store
from threadmark.state import Claim, RunStatus, claim_run


async def claim_by_id(
    store: Store, run_id: str, worker_id: str = WORKER, routes: tuple[str, ...] = ROUTES
) -> Claim | None:
    """Claim one run."""
    return await store.write(lambda connection: claim_run(connection, worker_id, routes, run_id))


async def test_a_due_run_is_claimed(store: Store) -> None:
    """It runs now, under a fence that has risen."""
    await store.register()
    run, other = await store.accept("hello"), await store.accept("hello")

    claimed = await claim_by_id(store, run.run_id)

    assert claimed is not None
    assert (claimed.run.run_id, claimed.run.status, claimed.run.attempts) == (run.run_id, RunStatus.RUNNING, 1)
    assert (claimed.thread.owner, claimed.thread.fence) == (WORKER, 1)
    assert (await store.run(other)).status is RunStatus.PENDING


async def test_an_unknown_run_is_not_claimed(store: Store) -> None:
    """Nothing changes."""
    await store.register()

    assert await claim_by_id(store, "01a22812-7193-7bcd-8304-da4549f015ef") is None
    assert await claim_by_id(store, "'; --") is None


async def test_a_run_that_is_claimed_or_has_ended_is_not_claimed_again(store: Store) -> None:
    """A doubled ring finds a holder, a late one a run that is over."""
    await store.register()
    run = await store.accept("hello")
    first = await claim_by_id(store, run.run_id)
    again = await claim_by_id(store, run.run_id, "worker-2")

    assert first is not None
    assert again is None
    assert (await store.seen(first.thread)).fence == first.thread.fence


async def test_a_run_that_is_not_due_yet_is_not_claimed(store: Store) -> None:
    """An early ring changes nothing."""
    await store.register()
    run = await store.accept("hello", delay_us=60_000_000)

    assert await claim_by_id(store, run.run_id) is None
    assert (await store.run(run)).status is RunStatus.PENDING


async def test_a_run_behind_another_waits_for_its_turn(store: Store) -> None:
    """The order of a thread is the order of acceptance, whichever run is notified first."""
    await store.register()
    thread = await store.thread()
    first = await store.accept("one", thread_id=thread.thread_id)
    second = await store.accept("two", thread_id=thread.thread_id)

    assert await claim_by_id(store, second.run_id) is None
    assert await claim_by_id(store, first.run_id) is not None
    assert await claim_by_id(store, second.run_id) is None


async def test_a_run_of_another_route_is_left_to_its_workers(store: Store) -> None:
    """A worker that lacks the agent does not take the run."""
    await store.register()
    run = await store.accept("hello")

    assert await claim_by_id(store, run.run_id, routes=("other",)) is None
    assert await claim_by_id(store, run.run_id, routes=("other", "chat")) is not None


async def test_of_many_that_are_rung_for_one_run_one_takes_it(store: Store, other_store: Store) -> None:
    """Two processes, ten rings in each."""
    await store.register()
    run = await store.accept("hello")

    outcomes = await asyncio.gather(
        *(claim_by_id(each, run.run_id, f"worker-{number}") for number in range(10) for each in (store, other_store))
    )

    assert sum(outcome is not None for outcome in outcomes) == 1
    assert (await store.run(run)).attempts == 1
