"""Turns and branches: forks, updates and rollbacks with tools that reach outside, and questions that are asked anew."""

import asyncio
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from tests.conformance.store import Store
from tests.integration.state.stage import Stage, open_stage
from tests.support.factories import Reply, a_submission, human
from threadmark.state import (
    CancelAction,
    Fork,
    ModelReplied,
    Run,
    RunRequest,
    RunStatus,
    StateUpdated,
    Stretch,
    ThreadStatus,
    Update,
    fork_lineage,
    read_history,
    update_state,
)
from threadmark.workers.agents.tool_context import ToolContext
from threadmark.workers.agents.tools import Effect, Tool, tool

DONE = Reply("All done.")
PAYING = [Reply("I will pay.", [("pay", {"cents": 10})]), Reply("And again.", [("pay", {"cents": 20})]), DONE]


@dataclass
class Bank:
    """The outside world: it pays once for each key, and takes a known key for a repetition."""

    paid: dict[str, int] = field(default_factory=dict)
    repetitions: int = 0

    def tool(self, *, needs_approval: bool = True) -> Tool:
        """The tool that reaches it."""

        @tool(effect=Effect.KEYED, needs_approval=needs_approval)
        async def pay(cents: int, context: ToolContext) -> int:
            """Pay."""
            self.repetitions += context.idempotency_key in self.paid
            return self.paid.setdefault(context.idempotency_key, cents)

        return pay


async def approve_all(stage: Stage, run: Run) -> Run:
    """Answer every question of the thread with yes until nothing is asked any more."""
    while waits := await stage.waits(run):
        run = await stage.answer(waits[0])
        assert (await stage.play_out(run)).status is RunStatus.SUCCESS
    return run


async def fork(stage: Stage, run: Run, seq: int, **request: object) -> Run:
    """A run that leaves the thread after the entry at `seq`."""
    submission = a_submission(thread_id=run.thread_id, request=RunRequest(from_seq=seq, **request))  # type: ignore[arg-type]
    made = await stage.store.submission(submission)
    assert made.run is not None
    return made.run


async def update_fork(stage: Stage, run: Run, seq: int, *texts: str) -> None:
    """Write from outside, on a new branch that leaves after the entry at `seq`."""
    thread = await stage.store.thread(run.thread_id)
    leaves = await stage.store.journal.read_leaves(thread.number)
    branch = 1 + max(leaves, default=0)
    lineage = fork_lineage(leaves, Stretch(thread.branch, seq), branch)
    change = Update(
        thread=thread,
        entry=StateUpdated(messages=tuple(human(text, f"human-{text}") for text in texts)),
        expected_seq=thread.head_seq,
        fork=Fork(branch=branch, parent=thread.branch, fork_seq=seq, lineage=lineage),
    )
    await stage.store.write(partial(update_state, change=change, now_us=stage.store.now_us()))


async def seq_of_reply(stage: Stage, run: Run) -> int:
    """Where the model first asked for a tool."""
    return next(each.seq for each in await stage.entries(run) if isinstance(each.entry, ModelReplied))


@pytest.mark.parametrize("first", [0, 1])
async def test_the_answers_to_parallel_questions_do_what_they_say(store: Store, tmp_path: Path, first: int) -> None:
    """One refused, one approved, in either order: the file is kept and the payment is done once (C25)."""
    bank, deleted = Bank(), []

    @tool(effect=Effect.ONCE, needs_approval=True)
    async def delete(path: str) -> str:
        """Delete a file."""
        deleted.append(path)
        return "deleted"

    replies = [Reply("Both.", [("delete", {"path": "a"}), ("pay", {"cents": 10})]), DONE]
    async with open_stage(store, tmp_path, replies, [delete, bank.tool()]) as stage:
        run = await stage.play_out(await stage.say())
        waits = {wait.tool: wait for wait in await stage.waits(run)}
        answers = [(waits["delete"], False), (waits["pay"], True)]

        for wait, value in (answers[first], answers[1 - first]):
            await stage.play_out(await stage.answer(wait, value))

        assert (deleted, list(bank.paid.values()), bank.repetitions) == ([], [10], 0)
        assert [message.content for message in await stage.messages(run)][2:] == [
            "A person refused this call.",
            "10",
            "All done.",
        ]
        assert {(wait.status, wait.answered_by) for wait in await store.waits(run)} == {("answered", "ann")}
        assert all(len(wait.shown_digest) == 64 for wait in waits.values())


async def test_a_fork_before_the_tools_asks_anew_and_pays_under_keys_of_its_own(store: Store, tmp_path: Path) -> None:
    """Neither its first call nor the ones after it are taken for repetitions of what the old branch did."""
    bank = Bank()
    async with open_stage(store, tmp_path, PAYING, [bank.tool()]) as stage:
        run = await stage.play_out(await stage.say())
        await approve_all(stage, run)
        assert list(bank.paid.values()) == [10, 20]

        forked = await stage.play_out(await fork(stage, run, await seq_of_reply(stage, run)))
        assert len(await stage.waits(forked)) == 1
        await approve_all(stage, forked)

        assert (list(bank.paid.values()), bank.repetitions) == ([10, 20, 10, 20], 0)
        assert [message.content for message in await stage.messages(run)] == [
            "go",
            "I will pay.",
            "10",
            "And again.",
            "20",
            "All done.",
        ]


async def test_an_update_that_forks_leads_to_steps_of_its_own(store: Store, tmp_path: Path) -> None:
    """The run that goes on from it asks the model, asks the person, and pays: nothing of it was done before."""
    bank = Bank()
    async with open_stage(store, tmp_path, PAYING, [bank.tool()]) as stage:
        run = await stage.play_out(await stage.say())
        await approve_all(stage, run)

        await update_fork(stage, run, 1, "on second thoughts")
        again = await stage.play_out(await stage.go_on(run))
        await approve_all(stage, again)

        assert (list(bank.paid.values()), bank.repetitions) == ([10, 20, 10, 20], 0)
        assert (await stage.messages(run))[1].content == "on second thoughts"


async def test_after_a_rollback_of_an_approved_run_the_question_is_asked_anew(store: Store, tmp_path: Path) -> None:
    """What the rolled back run paid is paid; a run that continues from before it decides again, under another key."""
    bank = Bank()
    replies = [PAYING[0], Reply("Then wait.", [("hang", {})]), DONE]
    hanging = asyncio.Event()

    @tool(effect=Effect.PURE)
    async def hang() -> str:
        """Hang in the first attempt."""
        if not hanging.is_set():
            hanging.set()
            await asyncio.Event().wait()
        return "ok"

    async with open_stage(store, tmp_path, replies, [bank.tool(), hang]) as stage:
        run = await stage.play_out(await stage.say())
        (wait,) = await stage.waits(run)
        approved = await stage.answer(wait)
        turn = await stage.turn()
        taking = asyncio.create_task(turn.take())
        await asyncio.wait_for(hanging.wait(), 10)
        await stage.cancel(approved, CancelAction.ROLLBACK)
        turn.notice()
        await asyncio.wait_for(taking, 10)
        assert list(bank.paid.values()) == [10]
        assert (await stage.state(run)).open_waits == []

        again = await stage.play_out(await stage.go_on(run))
        assert [each.wait_id == wait.wait_id for each in await stage.waits(run)] == [False]
        await approve_all(stage, again)

        assert (list(bank.paid.values()), bank.repetitions) == ([10, 10], 0)


@pytest.mark.parametrize(
    "request_", [{"interrupt_before": ("*",), "messages": (human("instead", "human-instead"),)}, {}]
)
async def test_a_fork_that_is_rolled_back_before_it_settles_leaves_no_trace(
    store: Store, tmp_path: Path, request_: dict[str, object]
) -> None:
    """The rollback was asked for after the claim: the end of the fork was refused, and what it had noted is undone."""
    async with open_stage(store, tmp_path, [DONE, DONE]) as stage:
        run = await stage.play_out(await stage.say())
        before = await stage.messages(run)
        forked = await fork(stage, run, 1 if request_ else 3, **request_)
        turn = await stage.turn()
        await stage.cancel(forked, CancelAction.ROLLBACK)

        await turn.take()

        assert await stage.messages(run) == before
        assert [each.run_id for each in await store.runs(run.thread)] == [run.run_id]
        entries = await stage.entries(run)
        leaves = await store.journal.read_leaves(run.thread)
        assert {each.branch for each in entries} <= {0, *leaves}
        positions = read_history(entries, leaves).positions
        assert {position.run for position in positions.values()} == {run.number}
        again = await stage.play_out(await stage.say("more", thread_id=run.thread_id))
        assert [message.content for message in await stage.messages(again)] == [
            *[message.content for message in before],
            "more",
            "All done.",
        ]


async def test_a_question_falls_away_when_the_person_says_something_else(store: Store, tmp_path: Path) -> None:
    """The call gets a result, the wait is closed, and the model answers what was said."""
    bank = Bank()
    async with open_stage(store, tmp_path, [PAYING[0], DONE], [bank.tool()]) as stage:
        run = await stage.play_out(await stage.say())
        assert (await store.thread(run.thread_id)).status is ThreadStatus.INTERRUPTED

        again = await stage.play_out(await stage.say("never mind", thread_id=run.thread_id))

        assert again.status is RunStatus.SUCCESS
        assert bank.paid == {}
        assert [wait.status for wait in await store.waits(run)] == ["superseded"]
        assert [message.type for message in await stage.messages(run)] == ["human", "ai", "tool", "human", "ai"]
