"""What is decided about a thread is decided under its lock: here a test holds it while requests are in flight."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest
from sqlalchemy import Connection

from tests.conformance.locking import HeldLock, hold_thread
from tests.conformance.store import Store
from tests.support.factories import TENANT, a_submission, tool_result
from threadmark.app.runs.state_update import UpdateSpec, update_thread
from threadmark.app.wire.conversations.message_schema import Revision
from threadmark.state import (
    Acceptance,
    AlreadyAnswered,
    Answer,
    CancelAction,
    Conflict,
    FoldCache,
    NothingToResume,
    NotInDoubt,
    Position,
    Recorded,
    Resume,
    Run,
    Start,
    ThreadBusy,
    ThreadStatus,
    answer_wait,
    cancel_runs,
    resolve_doubt,
)
from threadmark.state.append.run_changes import RunChanges


async def in_order(lock: HeldLock, *requests: Awaitable[Any]) -> list[Any]:
    """What became of requests that came one after the other, while the lock was held."""
    tasks: list[asyncio.Future[Any]] = []
    for request in requests:
        tasks.append(asyncio.ensure_future(request))
        await lock.blocks(len(tasks))
    lock.release()
    return await asyncio.gather(*tasks, return_exceptions=True)


def answering(store: Store, wait_id: str) -> Awaitable[Acceptance]:
    """`POST /waits/{wait_id}/answer`."""
    answer = Answer(wait_id=wait_id, value=True, actor="ann", submission=a_submission())
    return store.write(lambda connection: answer_wait(connection, TENANT, answer, store.now_us()))


def resuming(store: Store, run: Run, value: Any, **changes: Any) -> Awaitable[Acceptance]:
    """A run with `command.resume`."""
    return store.submission(a_submission(thread_id=run.thread_id, resume=Resume(value=value, actor="bob"), **changes))


@pytest.mark.parametrize("first", ["answer", "resume"])
async def test_an_answer_to_one_question_is_never_given_to_another(
    store: Store, other_store: Store, first: str
) -> None:
    """Both name question one: the second is refused, and question two stays open."""
    claimed, (one, two) = await store.asking("delete", "pay")
    async with hold_thread(store, claimed.run.thread) as lock:
        requests = [answering(store, one.wait_id), resuming(other_store, claimed.run, {one.wait_id: True})]
        outcomes = await in_order(lock, *(requests if first == "answer" else reversed(requests)))

    assert sorted(type(each).__name__ for each in outcomes) == ["Acceptance", "AlreadyAnswered"]
    assert {each.wait_id: each.status for each in await store.waits(claimed.run)} == {
        one.wait_id: "answered",
        two.wait_id: "open",
    }
    assert len(await store.runs(claimed.run.thread)) == 2


async def test_of_two_bare_resumes_one_is_refused_as_nothing_is_open(store: Store, other_store: Store) -> None:
    """The second one does not become an answer to something that comes later."""
    claimed, _ = await store.asking("pay")
    async with hold_thread(store, claimed.run.thread) as lock:
        outcomes = await in_order(
            lock, resuming(store, claimed.run, True), resuming(other_store, claimed.run, {"approve": True})
        )

    assert sum(isinstance(each, Acceptance) for each in outcomes) == 1
    assert sum(isinstance(each, NothingToResume) for each in outcomes) == 1


async def test_a_resume_behind_a_message_is_refused(store: Store, other_store: Store) -> None:
    """The conversation went on without an answer: the question is closed when the resume gets its turn."""
    claimed, (one,) = await store.asking("pay")
    async with hold_thread(store, claimed.run.thread) as lock:
        said, resumed = await in_order(
            lock,
            store.submission(a_submission("never mind", thread_id=claimed.run.thread_id)),
            resuming(other_store, claimed.run, {one.wait_id: True}),
        )

    if isinstance(said, Acceptance) and said.run is not None and isinstance(resumed, Acceptance):
        # SQLite gives the lock to either: the resume came first, and the message stands behind it.
        assert [each.status for each in await store.waits(claimed.run)] == ["answered"]
    else:
        assert isinstance(resumed, AlreadyAnswered)
        assert [each.status for each in await store.waits(claimed.run)] == ["superseded"]


@pytest.mark.parametrize("resumes", [True, False])
async def test_where_a_run_leaves_from_is_judged_by_the_thread_as_it_is_then(
    store: Store, other_store: Store, resumes: bool
) -> None:
    """Its checkpoint was the present one when it was read; with a run before it, it is a fork."""
    claimed, (one,) = await store.asking("pay")
    seen = await store.thread(claimed.run.thread_id)
    position = Position(seen.head_seq, 0, 0, None, "input", -1, "model", claimed.run.number)
    start = Start("checkpoint", position, is_present=True, head_seq=seen.head_seq)
    late: dict[str, Any] = {"thread_id": claimed.run.thread_id, "find_start": lambda _connection, _head_seq: start}
    if resumes:
        late["resume"] = Resume(value=True, actor="bob")

    # The first one stands in the journal's way when the second has read where it leaves from.
    await answering(store, one.wait_id)
    outcome = (
        await asyncio.gather(
            store.submission(a_submission(*([] if resumes else ["go"]), **late)), return_exceptions=True
        )
    )[0]

    if resumes:
        assert isinstance(outcome, Conflict)
    else:
        assert isinstance(outcome, Acceptance)
        assert outcome.run is not None
        assert outcome.run.request.from_seq == seen.head_seq


async def test_a_start_is_found_under_the_lock(store: Store, other_store: Store) -> None:
    """It is asked for with the head that the thread has when the lock is there, not with the one before."""
    run = await store.accept("one")
    heads: list[int] = []
    position = Position(0, 0, 0, None, "input", -1, "model", None)

    def find(_connection: Connection, head_seq: int) -> Start:
        heads.append(head_seq)
        return Start("checkpoint", position, is_present=False, head_seq=head_seq)

    async with hold_thread(store, run.thread) as lock:
        task = asyncio.ensure_future(
            other_store.submission(a_submission("two", thread_id=run.thread_id, find_start=find))
        )
        await lock.blocks(1)
        assert heads == []
        lock.release()
        await task

    assert heads == [0]


async def test_an_update_of_state_is_judged_by_the_thread_as_it_is_then(store: Store, other_store: Store) -> None:
    """A run that was accepted while the update waited is in its way; one of the two has what it asked for, not half."""
    claimed, (one,) = await store.asking("pay")
    thread_id = claimed.run.thread_id
    spec = UpdateSpec(
        revision=Revision(messages=(tool_result("call-0"),), removed=(), clears=False),
        as_node=None,
        checkpoint_id=None,
        by="key:ann",
    )

    def update(connection: Connection) -> Recorded:
        return update_thread(connection, FoldCache(), TENANT, thread_id, spec, store.now_us())

    async with hold_thread(store, claimed.run.thread) as lock:
        answered, updated = await in_order(lock, answering(store, one.wait_id), other_store.write(update))

    (wait,) = await store.waits(claimed.run)
    if isinstance(answered, Acceptance):
        assert isinstance(updated, ThreadBusy)
        assert wait.status == "answered"
    else:
        assert isinstance(answered, AlreadyAnswered)
        assert wait.status == "superseded"


async def test_what_was_found_out_about_one_doubt_does_not_settle_the_next(store: Store) -> None:
    """A verifier looked at the first attempt; meanwhile a person had the step made again, and that one is in doubt."""
    claimed, writer = await store.begun()
    first = store.question(claimed, kind="in_doubt")
    await store.put(writer, first, move=RunChanges(execution_id=claimed.run.execution_id, opened=(first,)))

    with pytest.raises(NotInDoubt):
        await store.write(
            lambda connection: resolve_doubt(
                connection, claimed.run, first.step_key, {}, "ann", store.now_us(), wait_id="an earlier doubt"
            )
        )
    await store.write(
        lambda connection: resolve_doubt(
            connection, claimed.run, first.step_key, {}, "ann", store.now_us(), wait_id=first.wait_id
        )
    )

    assert [each.status for each in await store.waits(claimed.run)] == ["answered"]


async def test_a_cancellation_and_an_answer_do_not_both_win(store: Store, other_store: Store) -> None:
    """A run that never began is cancelled while an answer waits: the question is open or answered, never lost."""
    claimed, (one,) = await store.asking("pay")
    await store.accept("never mind", thread_id=claimed.run.thread_id)

    def cancel(connection: Connection) -> tuple[str, ...]:
        return cancel_runs(connection, claimed.run.thread, CancelAction.INTERRUPT, store.now_us())

    async with hold_thread(store, claimed.run.thread) as lock:
        _, resumed = await in_order(lock, store.write(cancel), resuming(other_store, claimed.run, {one.wait_id: True}))

    (wait,) = await store.waits(claimed.run)
    status = (await store.thread(claimed.run.thread_id)).status
    if isinstance(resumed, Acceptance):
        assert (wait.status, status) == ("answered", ThreadStatus.BUSY)
    else:
        assert isinstance(resumed, AlreadyAnswered)
        assert (wait.status, status) == ("open", ThreadStatus.INTERRUPTED)
