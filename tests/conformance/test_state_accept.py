"""Acceptance: a request becomes a pending run; and what that does to the runs before it."""

import asyncio

import pytest

from tests.conformance.store import Store, a_receipt
from tests.support.factories import a_submission
from threadmark.state import Multitask, NotFound, RunStatus, ThreadBusy, ThreadStatus


async def test_a_request_becomes_a_pending_run_of_a_busy_thread(store: Store) -> None:
    """What the caller asked for is in the row, and survives any crash from then on (I1)."""
    run = await store.accept("hello", metadata={"m": "é\x00"}, resumable=True)

    seen = await store.run(run)
    assert (seen.status, seen.metadata, seen.resumable, seen.attempts) == (
        RunStatus.PENDING,
        {"m": "é\x00"},
        True,
        0,
    )
    assert seen.request.messages[0].content == "hello"
    thread = await store.thread(run.thread_id)
    assert (thread.status, thread.metadata) == (
        ThreadStatus.BUSY,
        {"graph_id": "chat", "assistant_id": "assistant-of-chat"},
    )


async def test_a_run_on_a_thread_that_is_not_there_is_refused(store: Store) -> None:
    """Unless it may make the thread; another tenant's thread is not there either."""
    theirs = await store.accept("one", tenant_id="other")

    for missing in ("018e0000-0000-7000-8000-000000000000", theirs.thread_id):
        with pytest.raises(NotFound):
            await store.accept("hello", thread_id=missing)
    made = await store.accept("hello", thread_id=theirs.thread_id, create_missing=True, thread_metadata={"a": 1})

    assert made.thread != theirs.thread
    assert (await store.thread(made.thread_id)).metadata["a"] == 1


async def test_two_runs_that_make_the_same_thread_share_it(store: Store, other_store: Store) -> None:
    """The second request finds it made (F24)."""
    offers = [a_submission(f"run {number}", thread_id="t", create_missing=True) for number in range(10)]

    made = await asyncio.gather(
        *((store, other_store)[number % 2].submission(each) for number, each in enumerate(offers))
    )

    assert len({each.run.thread for each in made if each.run}) == 1


@pytest.mark.parametrize("strategy", [Multitask.ENQUEUE, Multitask.REJECT, Multitask.INTERRUPT, Multitask.ROLLBACK])
async def test_on_an_idle_thread_every_strategy_accepts(store: Store, strategy: Multitask) -> None:
    """Strategies are about runs that have not ended."""
    thread = await store.thread()

    acceptance = await store.submission(a_submission("hello", thread_id=thread.thread_id, multitask=strategy))

    assert acceptance.run is not None
    assert acceptance.cancelled == ()


async def test_reject_refuses_a_busy_thread_and_changes_nothing(store: Store) -> None:
    """The caller has to wait; the key of the refused request is free again."""
    run = await store.accept("one")
    submission = a_submission("two", thread_id=run.thread_id, multitask=Multitask.REJECT, receipt=a_receipt())

    for _ in range(2):
        with pytest.raises(ThreadBusy):
            await store.submission(submission)

    assert len(await store.runs(run.thread)) == 1


async def test_enqueue_stands_behind(store: Store) -> None:
    """The running run is not touched."""
    claimed, _ = await store.begun("one")
    second = await store.accept("two", thread_id=claimed.run.thread_id)

    assert (await store.run(claimed.run)).cancel is None
    assert (await store.run(second)).status is RunStatus.PENDING


@pytest.mark.parametrize("strategy", [Multitask.INTERRUPT, Multitask.ROLLBACK])
async def test_interrupt_and_rollback_stop_every_unfinished_run_of_the_thread(
    store: Store, strategy: Multitask
) -> None:
    """The running one is asked to, one that never began ends at once; rolled back runs are gone for readers."""
    claimed, _ = await store.begun("one")
    queued = await store.accept("two", thread_id=claimed.run.thread_id)

    acceptance = await store.submission(a_submission("three", thread_id=claimed.run.thread_id, multitask=strategy))

    assert set(acceptance.cancelled) == {claimed.run.run_id, queued.run_id}
    assert str((await store.run(claimed.run)).cancel) == str(strategy)
    if strategy is Multitask.ROLLBACK:
        with pytest.raises(NotFound):
            await store.run(queued)
    else:
        assert (await store.run(queued)).status is RunStatus.INTERRUPTED
