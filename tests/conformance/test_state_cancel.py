"""Cancelling a run, settling its doubt, ending it: in any order, nothing is forgotten."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.conformance.store import Store
from tests.support.factories import TENANT, asked, human, replied
from threadmark.state import (
    CancelAction,
    Claim,
    Conflict,
    JournalWriter,
    NotFound,
    NothingToCancel,
    NotInDoubt,
    Overtaken,
    ParkReason,
    Resume,
    Run,
    RunChanges,
    RunOutcome,
    RunRequest,
    RunSettled,
    RunStatus,
    StepIntended,
    StepKey,
    ThreadStatus,
    TurnStarted,
    WaitOpened,
    WaitSuperseded,
    cancel_runs,
    delete_run,
    read_inbox,
    resolve_doubt,
)

CALLER_COUNT = 20
DOUBTFUL = StepKey("tool-1-0")
HAPPENED = {"outcome": "happened", "result": 1}


async def cancel(
    store: Store, run: Run, action: CancelAction = CancelAction.INTERRUPT, run_ids: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Ask the runs of a thread to stop."""
    return await store.write(
        lambda connection: cancel_runs(connection, run.thread, action, store.now_us(), run_ids=run_ids)
    )


async def resolve(store: Store, run: Run, value: Any = HAPPENED) -> None:
    """Settle the doubt of the run."""
    await store.write(lambda connection: resolve_doubt(connection, run, DOUBTFUL, value, "ann", store.now_us()))


def ending(status: RunStatus = RunStatus.PENDING, **changes: Any) -> RunChanges:
    """A turn lets its run go."""
    values: dict[str, Any] = {"status": status, "thread_status": ThreadStatus.BUSY}
    return RunChanges(ending=RunOutcome(**values | changes))


async def doubting(store: Store, *, parked: bool = True) -> tuple[Claim, JournalWriter, WaitOpened]:
    """A run that has asked what became of a step, and has parked for it."""
    claimed, writer = await store.begun()
    wait = store.question(claimed, kind="in_doubt")
    intent = StepIntended(step_key=DOUBTFUL, effect="once", idempotency_key="k")
    opening = RunChanges(execution_id=claimed.run.execution_id, opened=(wait,))
    await store.put(writer, replied(asked("pay")), intent, wait, move=opening)
    if parked:
        await store.put(writer, move=ending(parked=ParkReason.IN_DOUBT, thread_status=ThreadStatus.INTERRUPTED))
    return claimed, writer, wait


async def test_a_run_that_never_began_ends_at_once(store: Store) -> None:
    """There is no turn to ask; nothing is recorded for it, and the thread is idle again."""
    run = await store.accept("hello")

    assert await cancel(store, run) == (run.run_id,)

    seen = await store.run(run)
    assert (seen.status, seen.reason) == (RunStatus.INTERRUPTED, "cancelled before it began")
    assert (await store.thread(run.thread_id)).status is ThreadStatus.IDLE
    assert await store.claim() == []


async def test_a_running_run_is_asked_to_stop(store: Store) -> None:
    """Its holder learns of it from the append that it does anyway: the inbox counter has risen."""
    claimed, writer = await store.begun()
    before = writer.inbox

    await cancel(store, claimed.run)
    await store.put(writer, TurnStarted(worker_id="w", attempt=1))

    assert writer.inbox > before
    inbox = await store.read(lambda connection: read_inbox(connection, claimed.thread.number, claimed.run.number))
    assert inbox is not None
    assert (inbox.run.cancel, inbox.run.status) == (CancelAction.INTERRUPT, RunStatus.RUNNING)


@pytest.mark.parametrize("reason", ParkReason)
async def test_a_parked_run_is_due_at_once(store: Store, reason: ParkReason) -> None:
    """A worker has to journal its end; what it waited for does not matter any more."""
    claimed, writer = await store.begun()
    await store.put(writer, move=ending(parked=reason, due_at_us=store.now_us() + 3_600_000_000))
    assert await store.claim() == []

    await cancel(store, claimed.run)

    (taken,) = await store.claim()
    assert (taken.run.cancel, taken.run.parked) == (CancelAction.INTERRUPT, None)


@pytest.mark.parametrize("reason", ParkReason)
async def test_a_run_that_is_cancelled_while_it_parks_is_due_at_once(store: Store, reason: ParkReason) -> None:
    """The cancellation found it running and the park came later: it would wait for ever otherwise."""
    claimed, writer = await store.begun()
    await cancel(store, claimed.run)

    await store.put(writer, move=ending(parked=reason, due_at_us=store.now_us() + 3_600_000_000))

    assert [each.run.run_id for each in await store.claim()] == [claimed.run.run_id]


async def test_a_doubt_that_is_settled_while_its_run_parks_is_not_forgotten(store: Store) -> None:
    """The answer found the run running, and the park came later: the run is due at once all the same."""
    claimed, writer, wait = await doubting(store, parked=False)
    await resolve(store, claimed.run)

    await store.put(writer, move=ending(parked=ParkReason.IN_DOUBT, thread_status=ThreadStatus.INTERRUPTED))

    (taken,) = await store.claim()
    assert [(each.wait_id, each.answer) for each in taken.answers] == [(wait.wait_id, HAPPENED)]


async def test_a_settled_doubt_makes_the_parked_run_due(store: Store) -> None:
    """The same run goes on by itself, with the answer in hand."""
    claimed, _, wait = await doubting(store)
    assert (await store.run(claimed.run)).parked is ParkReason.IN_DOUBT
    assert (await store.seen(claimed.thread)).status is ThreadStatus.INTERRUPTED
    assert await store.claim() == []

    await resolve(store, claimed.run)

    assert (await store.seen(claimed.thread)).status is ThreadStatus.BUSY
    (taken,) = await store.claim()
    assert [(each.wait_id, each.answer, each.answered_by) for each in taken.answers] == [
        (wait.wait_id, HAPPENED, "ann")
    ]


async def test_of_twenty_that_settle_a_doubt_the_first_stands(store: Store, other_store: Store) -> None:
    """The others are refused because there is no doubt any more."""
    claimed, _, _ = await doubting(store)

    outcomes = await asyncio.gather(
        *(resolve((store, other_store)[n % 2], claimed.run, {"by": n}) for n in range(CALLER_COUNT)),
        return_exceptions=True,
    )

    assert sum(isinstance(each, NotInDoubt) for each in outcomes) == CALLER_COUNT - 1
    (answered,) = await store.waits(claimed.run)
    assert answered.answer == {"by": outcomes.index(None)}


async def test_an_approval_is_no_doubt(store: Store) -> None:
    """It is answered, and not resolved."""
    claimed, _ = await store.asking("pay")

    with pytest.raises(NotInDoubt):
        await resolve(store, claimed.run)


async def test_a_run_that_has_to_roll_back_cannot_settle(store: Store) -> None:
    """What was noted goes with the next flush; nothing of the end was written."""
    claimed, writer = await store.begun()
    await cancel(store, claimed.run, CancelAction.ROLLBACK)

    with pytest.raises(Overtaken):
        await store.put(writer, RunSettled(run_id=claimed.run.run_id, status="success"), move=ending(RunStatus.SUCCESS))
    assert len(await store.entries(claimed.thread.number)) == 2
    assert (await store.run(claimed.run)).status is RunStatus.RUNNING

    await writer.flush()
    assert len(await store.entries(claimed.thread.number)) == 3
    await store.put(writer, move=ending(RunStatus.INTERRUPTED, hidden=True, thread_status=ThreadStatus.IDLE))
    with pytest.raises(NotFound):
        await store.run(claimed.run)
    assert await store.journal.verify(claimed.thread) == []


async def test_a_rollback_that_was_asked_for_stays_asked_for(store: Store) -> None:
    """A run that waits behind it was accepted on the ground that it comes; a later interrupt does not take it back."""
    claimed, _ = await store.begun()

    await cancel(store, claimed.run, CancelAction.ROLLBACK)
    await cancel(store, claimed.run, CancelAction.INTERRUPT)

    assert (await store.run(claimed.run)).cancel is CancelAction.ROLLBACK


async def test_a_run_that_is_asked_to_interrupt_may_still_succeed(store: Store) -> None:
    """It was done before it learned of it: its answer stands."""
    claimed, writer = await store.begun()
    await cancel(store, claimed.run)

    await store.put(writer, move=ending(RunStatus.SUCCESS, thread_status=ThreadStatus.IDLE))

    assert (await store.run(claimed.run)).status is RunStatus.SUCCESS


async def test_only_unfinished_runs_can_be_cancelled(store: Store) -> None:
    """Those that were named, or all of the thread; none is an error."""
    first = await store.accept("one")
    second = await store.accept("two", thread_id=first.thread_id)
    with pytest.raises(NothingToCancel):
        await cancel(store, first, run_ids=["no such run"])

    assert await cancel(store, first, run_ids=[second.run_id]) == (second.run_id,)
    assert await cancel(store, first) == (first.run_id,)
    with pytest.raises(NothingToCancel):
        await cancel(store, first)


async def test_a_thread_whose_question_is_open_stays_interrupted(store: Store) -> None:
    """The run that was cancelled before it began had not touched the question."""
    claimed, _ = await store.asking("pay")
    run = await store.accept(thread_id=claimed.run.thread_id)

    await cancel(store, run)

    assert (await store.seen(claimed.thread)).status is ThreadStatus.INTERRUPTED


@pytest.mark.parametrize("action", CancelAction)
async def test_a_question_that_fell_away_for_a_run_that_never_began_is_asked_again(
    store: Store, action: CancelAction
) -> None:
    """Nothing has moved: the thread waits for the answer as before, and nobody else would ever ask."""
    claimed, (wait,) = await store.asking("pay")
    run = await store.accept("never mind", thread_id=claimed.run.thread_id)
    assert [each.status for each in await store.waits(claimed.run)] == ["superseded"]

    await cancel(store, run, action)

    assert [each.status for each in await store.waits(claimed.run)] == ["open"]
    assert (await store.seen(claimed.thread)).status is ThreadStatus.INTERRUPTED
    resumed = await store.accept(thread_id=claimed.run.thread_id, resume=Resume(value=True, actor="ann"))
    assert resumed.execution_id == claimed.run.execution_id
    assert [(each.wait_id, each.status) for each in await store.waits(claimed.run)] == [(wait.wait_id, "answered")]


async def test_a_question_that_fell_away_in_the_journal_is_not_asked_again(store: Store) -> None:
    """A run began and moved on without the answer; cancelling the next one brings nothing back."""
    claimed, (wait,) = await store.asking("pay")
    _, writer = await store.begun_on(claimed.run, request=RunRequest(messages=(human("never mind", "human-2"),)))
    gone = WaitSuperseded(wait_id=wait.wait_id, step_key=wait.step_key)
    done = RunOutcome(status=RunStatus.SUCCESS, thread_status=ThreadStatus.IDLE)
    await store.put(writer, gone, move=RunChanges(superseded=(wait.wait_id,), ending=done))
    run = await store.accept("more", thread_id=claimed.run.thread_id)

    await cancel(store, run)

    assert [each.status for each in await store.waits(claimed.run)] == ["superseded"]
    assert (await store.seen(claimed.thread)).status is ThreadStatus.IDLE


async def test_a_run_is_deleted_when_it_has_ended(store: Store) -> None:
    """It is gone from every list; what it said stays in the thread."""
    claimed, writer = await store.begun()

    async def delete() -> None:
        run = claimed.run
        await store.write(lambda connection: delete_run(connection, TENANT, run.thread_id, run.run_id, store.now_us()))

    with pytest.raises(Conflict):
        await delete()
    await store.put(writer, move=ending(RunStatus.SUCCESS, thread_status=ThreadStatus.IDLE))
    await delete()

    assert await store.runs(claimed.thread.number) == []
    assert len(await store.entries(claimed.thread.number)) == 2
    with pytest.raises(NotFound):
        await delete()


async def test_a_thread_is_busy_while_another_run_waits(store: Store) -> None:
    """The end of one run is not the end of the work; a failure is reported only when nothing follows it."""
    claimed, writer = await store.begun("one")
    second = await store.accept("two", thread_id=claimed.run.thread_id)

    await store.put(writer, move=ending(RunStatus.ERROR, thread_status=ThreadStatus.ERROR))
    assert (await store.seen(claimed.thread)).status is ThreadStatus.BUSY

    taken, writer = await store.hold(second)
    await store.put(writer, move=ending(RunStatus.ERROR, thread_status=ThreadStatus.ERROR))
    assert (await store.seen(taken.thread)).status is ThreadStatus.ERROR
