"""Turns that do not come to their end: a cancellation, a release, a dead worker, a rollback."""

import asyncio
from pathlib import Path

import pytest

from tests.conformance.store import Store
from tests.integration.state.interrupting import DONE, Slow, cancelled_run, interrupted, parallel, quick
from tests.integration.state.stage import open_stage
from tests.support.factories import Reply
from threadmark.state import CancelAction, ModelReplied, RolledBack, RunStatus, StepIntended, ThreadStatus, ToolReturned
from threadmark.workers.agents.tools import Effect, tool
from threadmark.workers.turn.turn import Turn


@pytest.mark.parametrize(
    ("effect", "outcome"), [(Effect.PURE, "cancelled"), (Effect.KEYED, "unknown"), (Effect.ONCE, "unknown")]
)
async def test_a_cancelled_run_leaves_no_call_without_a_result(
    store: Store, tmp_path: Path, effect: Effect, outcome: str
) -> None:
    """One call had ended, one sleeps: it gets a result, the tool cleans up, and the next turn is valid (C37)."""
    slow = Slow(effect)
    async with open_stage(store, tmp_path, parallel("quick", "slow"), [quick, slow.tool]) as stage:
        ended = await cancelled_run(stage, slow)

        assert (ended.status, ended.reason) == (RunStatus.INTERRUPTED, "cancelled")
        assert slow.cleaned_up.is_set()
        results = {each.call_id: each.outcome for each in await stage.entries_of(ended, ToolReturned)}
        assert results == {"call-0-0": "ok", "call-0-1": outcome}
        again = await stage.play_out(await stage.say("again", thread_id=ended.thread_id))
        assert again.status is RunStatus.SUCCESS
        assert [message.type for message in await stage.messages(again)] == [
            "human",
            "ai",
            "tool",
            "tool",
            "human",
            "ai",
        ]


async def test_a_cancellation_whose_notification_was_lost_is_found_at_the_next_flush(
    store: Store, tmp_path: Path
) -> None:
    """The append that the turn does anyway brings the inbox counter along: the run ends at the next step."""
    calls = 0

    async with open_stage(store, tmp_path, [Reply("Again.", [("act", {})])] * 50) as stage:
        run = await stage.say()

        @tool(effect=Effect.PURE)
        async def act() -> str:
            """Have the run cancelled by another process."""
            nonlocal calls
            calls += 1
            if calls == 1:
                await stage.cancel(run)
            return "ok"

        await stage.play(act)

        assert (await store.run(run)).status is RunStatus.INTERRUPTED
        assert calls == 1


async def test_a_cancelled_reply_keeps_what_had_streamed(store: Store, tmp_path: Path) -> None:
    """The person saw it: it stays in the transcript, marked as cut short, with the cuts of its pieces."""
    async with open_stage(store, tmp_path, [Reply(pieces=["Once upon", " a time"])]) as stage:
        streamed = asyncio.Event()

        async def hang() -> None:
            streamed.set()
            await asyncio.Event().wait()

        stage.model.before_end = hang
        run = await stage.say()

        async def cancel(turn: Turn) -> None:
            await stage.cancel(run)
            turn.notice()

        await interrupted(stage, streamed, cancel)

        assert (await store.run(run)).status is RunStatus.INTERRUPTED
        (reply,) = await stage.entries_of(run, ModelReplied)
        assert (reply.message.content, reply.finish_reason, reply.cuts) == ("Once upon a time", "cancelled", (9, 7))
        stage.model.before_end = None
        again = await stage.play_out(await stage.say("again", thread_id=run.thread_id))
        assert [message.type for message in await stage.messages(again)] == ["human", "ai", "human", "ai"]


async def test_a_reply_of_which_nothing_had_streamed_leaves_nothing(store: Store, tmp_path: Path) -> None:
    """An empty message would only confuse the next model call."""
    async with open_stage(store, tmp_path, [Reply()]) as stage:
        asked = asyncio.Event()

        async def hang() -> None:
            asked.set()
            await asyncio.Event().wait()

        stage.model.before_end = hang
        run = await stage.say()

        async def cancel(turn: Turn) -> None:
            await stage.cancel(run)
            turn.notice()

        await interrupted(stage, asked, cancel)

        assert await stage.entries_of(run, ModelReplied) == []


@pytest.mark.parametrize("effect", [Effect.PURE, Effect.IDEMPOTENT, Effect.KEYED])
async def test_a_released_run_is_carried_on_by_another_worker(store: Store, tmp_path: Path, effect: Effect) -> None:
    """A deploy in the middle of an effect: the thread is let go at once, and the step runs again with its key."""
    slow = Slow(effect)
    async with open_stage(store, tmp_path, parallel("slow"), [slow.tool]) as stage:
        run = await stage.say()
        await interrupted(stage, slow.started, lambda turn: turn.release())
        released = await store.run(run)
        assert (released.status, released.parked) == (RunStatus.PENDING, None)
        assert (await store.thread(run.thread_id)).owner is None
        assert slow.cleaned_up.is_set()

        assert (await stage.play_out(run)).status is RunStatus.SUCCESS

        assert [context.attempt for context in slow.contexts] == [1, 2]
        assert len({context.idempotency_key for context in slow.contexts}) == 1
        assert len(await stage.entries_of(run, StepIntended)) == (1 if effect is Effect.KEYED else 0)
        assert len(await stage.entries_of(run, ModelReplied)) == 2, "the recorded reply was not asked for again"


async def test_a_rolled_back_run_leaves_the_thread_as_it_was(store: Store, tmp_path: Path) -> None:
    """In the middle of a tool: the head moves back, the entries stay on the branch that was left."""
    slow = Slow(Effect.PURE)
    replies = [DONE, Reply("Let me see.", [("quick", {}), ("slow", {})]), DONE]
    async with open_stage(store, tmp_path, replies, [quick, slow.tool]) as stage:
        first = await stage.play_out(await stage.say("one"))
        before = await stage.messages(first)
        run = await stage.say("two", thread_id=first.thread_id)

        async def roll_back(turn: Turn) -> None:
            await stage.cancel(run, CancelAction.ROLLBACK)
            turn.notice()

        await interrupted(stage, slow.started, roll_back)

        assert await stage.messages(first) == before
        assert [each.run_id for each in await store.runs(first.thread)] == [first.run_id]
        assert len(await stage.entries_of(first, RolledBack)) == 1
        assert (await store.thread(first.thread_id)).status is ThreadStatus.IDLE
        again = await stage.play_out(await stage.say("three", thread_id=first.thread_id))
        assert [message.content for message in await stage.messages(again)][:3] == ["one", "All done.", "three"]


async def test_the_thread_of_a_deleted_run_is_let_go(store: Store, tmp_path: Path) -> None:
    """The worker learns that the thread is gone, stops its tool, and writes nothing (C62)."""
    slow = Slow(Effect.PURE)
    async with open_stage(store, tmp_path, parallel("slow"), [slow.tool]) as stage:
        run = await stage.say()

        async def delete(turn: Turn) -> None:
            await store.delete(run.thread_id, run.tenant_id)
            turn.notice()

        await interrupted(stage, slow.started, delete)

        assert slow.cleaned_up.is_set()
        assert await store.entries(run.thread) == []
