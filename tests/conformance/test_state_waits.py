"""Waits: a question is answered once, by the first answer, and that reaches the call that asked."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest
from sqlalchemy import Connection

from tests.conformance.store import Store, a_receipt
from tests.support.factories import TENANT, a_submission
from threadmark.state import (
    Acceptance,
    AlreadyAnswered,
    Answer,
    CallOutdated,
    Conflict,
    NothingToResume,
    Refused,
    Resume,
    Run,
    RunChanges,
    Wait,
    answer_wait,
    list_open_waits,
    resolve_doubt,
    wait_id_of,
)

CALLER_COUNT = 20
RESUMING = {"resume": Resume(value=True, actor="ann")}


async def test_a_resume_answers_the_question_and_continues_its_execution(store: Store) -> None:
    """The new run carries the execution on, and the answer comes with its claim."""
    claimed, (wait,) = await store.asking("pay")

    run = await store.accept(thread_id=claimed.run.thread_id, **RESUMING)

    assert run.execution_id == claimed.run.execution_id
    (answered,) = await store.waits(claimed.run)
    assert (answered.wait_id, answered.status, answered.answer, answered.answered_by) == (
        wait.wait_id,
        "answered",
        True,
        "ann",
    )
    (taken,) = await store.claim("worker-2")
    assert [(each.wait_id, each.answer) for each in taken.answers] == [(wait.wait_id, True)]


async def test_of_twenty_resumes_at_once_one_wins(store: Store, other_store: Store) -> None:
    """A double click and a webhook that comes again: one continuation, and the others are refused (C27)."""
    claimed, _ = await store.asking("send_mail")
    keyed = a_submission(thread_id=claimed.run.thread_id, receipt=a_receipt(), **RESUMING)
    bare = a_submission(thread_id=claimed.run.thread_id, **RESUMING)

    outcomes = await asyncio.gather(
        *((store, other_store)[n % 2].submission(keyed if n % 4 < 2 else bare) for n in range(CALLER_COUNT)),
        return_exceptions=True,
    )

    accepted = [each for each in outcomes if isinstance(each, Acceptance) and each.run is not None]
    assert len(accepted) == 1
    assert all(
        isinstance(each, NothingToResume) or (isinstance(each, Acceptance) and each.replay is not None)
        for each in outcomes
        if each is not accepted[0]
    )
    assert len(await store.runs(claimed.run.thread)) == 2


async def test_a_thread_that_asks_nothing_cannot_be_resumed(store: Store) -> None:
    """Neither can one whose question was answered, or fell away because a person said something else."""
    thread = await store.thread()
    claimed, _ = await store.asking("pay")
    await store.accept("never mind", thread_id=claimed.run.thread_id)

    for thread_id in (thread.thread_id, claimed.run.thread_id):
        with pytest.raises(NothingToResume):
            await store.accept(thread_id=thread_id, **RESUMING)
    assert [each.status for each in await store.waits(claimed.run)] == ["superseded"]


async def test_several_questions_are_answered_by_their_ids(store: Store) -> None:
    """One value for two questions is ambiguous and refused; an object of ids answers those that it names (C25)."""
    claimed, (first, second) = await store.asking("delete", "pay")
    with pytest.raises(Refused, match=first.wait_id):
        await store.accept(thread_id=claimed.run.thread_id, **RESUMING)

    answers = {second.wait_id: True, first.wait_id: False}
    await store.accept(thread_id=claimed.run.thread_id, resume=Resume(value=answers, actor="ann"))

    assert {each.wait_id: each.answer for each in await store.waits(claimed.run)} == answers


async def test_questions_may_be_answered_one_by_one(store: Store) -> None:
    """In either order, each by its own request; each brings a run about that continues the execution."""
    claimed, (first, second) = await store.asking("delete", "pay")

    runs = [await _answered(store, each.wait_id, value) for each, value in ((second, True), (first, False))]

    assert {run.execution_id for run in runs} == {claimed.run.execution_id}
    assert {each.wait_id: each.answer for each in await store.waits(claimed.run)} == {
        first.wait_id: False,
        second.wait_id: True,
    }


async def test_of_twenty_answers_at_once_the_first_stands(store: Store, other_store: Store) -> None:
    """The status check and the transition are one conditional update."""
    claimed, (wait,) = await store.asking("pay")

    outcomes = await asyncio.gather(
        *(_answered((store, other_store)[n % 2], wait.wait_id, n) for n in range(CALLER_COUNT)),
        return_exceptions=True,
    )

    assert sum(isinstance(each, Run) for each in outcomes) == 1
    assert sum(isinstance(each, AlreadyAnswered) for each in outcomes) == CALLER_COUNT - 1
    (answered,) = await store.waits(claimed.run)
    assert answered.answer == [isinstance(each, Run) for each in outcomes].index(True)


async def test_a_doubt_is_resolved_and_not_answered(store: Store) -> None:
    """The two questions have different answers; the refusal says where to go."""
    claimed, writer = await store.begun()
    wait = store.question(claimed, kind="in_doubt")
    await store.put(writer, wait, move=RunChanges(execution_id=claimed.run.execution_id, opened=(wait,)))

    with pytest.raises(Conflict, match="resolve"):
        await _answered(store, wait.wait_id, True)


async def test_a_check_that_refuses_leaves_the_question_open(store: Store) -> None:
    """By either way of answering: it sees the question as it was kept, and what it raises undoes everything."""
    claimed, (wait,) = await store.asking("pay")
    seen: list[tuple[str, str | None, object]] = []

    def check(_connection: Connection, asked: Wait, value: object) -> None:
        seen.append((asked.wait_id, asked.effect, value))
        raise CallOutdated(asked.wait_id, "It is gone.")

    with pytest.raises(CallOutdated):
        await store.accept(thread_id=claimed.run.thread_id, check_answer=check, **RESUMING)
    answer = Answer(wait_id=wait.wait_id, value=True, actor="ann", submission=a_submission(check_answer=check))
    with pytest.raises(CallOutdated):
        await store.write(lambda connection: answer_wait(connection, TENANT, answer, store.now_us()))

    assert seen == [(wait.wait_id, "once", True)] * 2
    assert [each.status for each in await store.waits(claimed.run)] == ["open"]
    open_ones = await store.database.read(lambda connection: list_open_waits(connection, count_max=10))
    assert [(each.wait.wait_id, each.assistant, each.wait.effect) for each in open_ones] == [
        (wait.wait_id, claimed.run.assistant, "once")
    ]


async def test_a_resolution_without_a_name_does_not_settle_a_later_doubt(store: Store) -> None:
    """The step was made again and is in doubt again; who saw the first doubt says nothing of the second."""
    claimed, writer = await store.begun()
    run = claimed.run
    first = store.question(claimed, kind="in_doubt")
    await store.put(writer, first, move=RunChanges(execution_id=run.execution_id, opened=(first,)))

    def resolve(wait_id: str | None) -> Callable[[Connection], None]:
        return lambda connection: resolve_doubt(
            connection, run, first.step_key, {"outcome": "did_not_happen"}, "ann", store.now_us(), wait_id=wait_id
        )

    await store.write(resolve(None))
    second = msgspec.structs.replace(first, wait_id=wait_id_of(run.execution_id, first.step_key, "in_doubt-1"))
    await store.put(writer, second, move=RunChanges(execution_id=run.execution_id, opened=(second,)))

    with pytest.raises(Conflict, match=second.wait_id):
        await store.write(resolve(None))
    with pytest.raises(AlreadyAnswered):
        await store.write(resolve(first.wait_id))
    assert [each.status for each in await store.waits(run)] == ["answered", "open"]
    await store.write(resolve(second.wait_id))
    assert [each.status for each in await store.waits(run)] == ["answered", "answered"]


async def _answered(store: Store, wait_id: str, value: object) -> Run:
    answer = Answer(wait_id=wait_id, value=value, actor="ann", submission=a_submission())
    acceptance = await store.write(lambda connection: answer_wait(connection, TENANT, answer, store.now_us()))
    assert acceptance.run is not None
    return acceptance.run
