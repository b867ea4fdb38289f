"""Turns that do not come to their end: a cancellation, a release, a dead worker, a rollback."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from state import CancelAction, ModelReplied, RolledBack, RunStatus, StepIntended, ThreadStatus, ToolReturned
from tests.conformance.store import Store
from tests.factories import Reply
from tests.integration.state.stage import Stage, open_stage
from tests.waiting import wait_until
from workers.tools import Effect, Tool, ToolContext, tool
from workers.turn import Turn

DONE = Reply("All done.")


class Slow:
    """A tool that hangs in its first attempt, and tells of every one."""

    def __init__(self, effect: Effect, name: str = "slow") -> None:
        self.contexts: list[ToolContext] = []
        self.started = asyncio.Event()
        self.cleaned_up = asyncio.Event()

        @tool(effect=effect, name=name)
        async def slow(context: ToolContext) -> str:
            """Hang."""
            self.contexts.append(context)
            if len(self.contexts) == 1:
                self.started.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    self.cleaned_up.set()
            return f"attempt {context.attempt}"

        self.tool: Tool = slow


@tool(effect=Effect.PURE)
async def quick() -> str:
    """Come back at once."""
    return "quick"


async def interrupted(stage: Stage, begun: asyncio.Event, interrupt: Callable[[Turn], Awaitable[None] | None]) -> None:
    """Take a turn, and interrupt it once `begun` is set."""
    turn = await stage.turn()
    taking = asyncio.create_task(turn.take())
    await asyncio.wait_for(begun.wait(), 10)
    if (waiting := interrupt(turn)) is not None:
        await waiting
    await asyncio.wait_for(taking, 10)


def parallel(*names: str) -> list[Reply]:
    """A model that asks for these tools at once, and is done then."""
    return [Reply("Let me see.", [(name, {}) for name in names]), DONE]


async def cancelled_run(stage: Stage, slow: Slow, **options: Any) -> Any:
    """A run that was cancelled in the middle of its slow tool, as it ended."""
    run = await stage.say(**options)

    async def cancel(turn: Turn) -> None:
        await wait_until(_journaled(stage, run, "quick"), description="the quick result")
        await stage.cancel(run)
        turn.notice()

    await interrupted(stage, slow.started, cancel)
    return await stage.store.run(run)


def _journaled(stage: Stage, run: Any, value: str) -> Callable[[], Awaitable[bool]]:
    async def is_journaled() -> bool:
        return any(each.value == value for each in await stage.told(run, ToolReturned))

    return is_journaled


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
        results = {each.call_id: each.outcome for each in await stage.told(ended, ToolReturned)}
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


async def test_a_cancellation_that_nobody_told_of_is_found_at_the_next_flush(store: Store, tmp_path: Path) -> None:
    """The append that the turn does anyway brings the inbox counter along: the run ends at the next step."""
    calls = 0

    async with open_stage(store, tmp_path, [Reply("Again.", [("act", {})])] * 50) as stage:
        run = await stage.say()

        @tool(effect=Effect.PURE)
        async def act() -> str:
            """Have the run cancelled by somebody else's process."""
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
        (reply,) = await stage.told(run, ModelReplied)
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

        assert await stage.told(run, ModelReplied) == []


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
        assert len(await stage.told(run, StepIntended)) == (1 if effect is Effect.KEYED else 0)
        assert len(await stage.told(run, ModelReplied)) == 2, "the recorded reply was not asked for again"


async def test_a_once_step_that_was_released_in_the_middle_is_in_doubt(store: Store, tmp_path: Path) -> None:
    """It never runs again by itself: a person says what became of it."""
    slow = Slow(Effect.ONCE)
    async with open_stage(store, tmp_path, parallel("slow"), [slow.tool]) as stage:
        run = await stage.say()
        await interrupted(stage, slow.started, lambda turn: turn.release())

        assert (await stage.play_out(run)).parked == "in_doubt"

        assert len(slow.contexts) == 1
        assert (await store.thread(run.thread_id)).status is ThreadStatus.INTERRUPTED
        assert [wait.kind for wait in await stage.waits(run)] == ["in_doubt"]


@pytest.mark.parametrize("how", ["it raised", "its worker died"])
@pytest.mark.parametrize(
    ("resolution", "call_count", "told"),
    [
        ({"outcome": "happened", "result": {"paid": 1}}, 1, '{"paid":1}'),
        ({"outcome": "did_not_happen"}, 2, "paid by attempt 2"),
    ],
)
async def test_a_doubt_is_settled_by_a_person_and_the_same_run_goes_on(
    store: Store, tmp_path: Path, how: str, resolution: dict[str, Any], call_count: int, told: str
) -> None:
    """Whatever brought it about; with `did_not_happen` the call is made again, under the same key."""
    contexts: list[ToolContext] = []

    @tool(effect=Effect.ONCE)
    async def pay(context: ToolContext) -> str:
        """Break in the middle of the first payment."""
        contexts.append(context)
        if len(contexts) == 1:
            raise _Death if how == "its worker died" else OSError("connection lost")
        return f"paid by attempt {context.attempt}"

    async with open_stage(store, tmp_path, parallel("pay"), [pay]) as stage:
        run = await stage.say()
        if how == "its worker died":
            with pytest.raises(_Death):
                await stage.play()
        assert (await stage.play_out(run)).parked == "in_doubt"

        await stage.resolve(run, resolution)
        ended = await stage.play_out(run)

        assert (ended.status, len(contexts)) == (RunStatus.SUCCESS, call_count)
        assert len({context.idempotency_key for context in contexts}) == 1
        assert (await stage.messages(run))[2].content == told
        (result,) = await stage.told(run, ToolReturned)
        assert result.resolved_by == ("ann" if resolution["outcome"] == "happened" else None)


class _Death(BaseException):
    """Nothing of the turn catches it: as if the process had died."""


async def test_a_cancelled_doubt_ends_as_unknown(store: Store, tmp_path: Path) -> None:
    """The question falls away with its run; the next run finds a valid transcript."""
    slow = Slow(Effect.ONCE)
    async with open_stage(store, tmp_path, parallel("slow"), [slow.tool]) as stage:
        run = await stage.say()
        await interrupted(stage, slow.started, lambda turn: turn.release())
        await stage.play_out(run)

        await stage.cancel(run)

        assert (await stage.play_out(run)).status is RunStatus.INTERRUPTED
        assert [each.outcome for each in await stage.told(run, ToolReturned)] == ["unknown"]
        assert [wait.status for wait in await store.waits(run)] == ["superseded"]
        assert (await store.thread(run.thread_id)).status is ThreadStatus.IDLE


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
        assert len(await stage.told(first, RolledBack)) == 1
        assert (await store.thread(first.thread_id)).status is ThreadStatus.IDLE
        again = await stage.play_out(await stage.say("three", thread_id=first.thread_id))
        assert [message.content for message in await stage.messages(again)][:3] == ["one", "All done.", "three"]


async def test_the_thread_of_a_deleted_run_is_let_go(store: Store, tmp_path: Path) -> None:
    """The worker is told that the thread is gone, stops its tool, and writes nothing (C62)."""
    from state import delete_thread

    slow = Slow(Effect.PURE)
    async with open_stage(store, tmp_path, parallel("slow"), [slow.tool]) as stage:
        run = await stage.say()

        async def delete(turn: Turn) -> None:
            await store.write(lambda connection: delete_thread(connection, run.tenant_id, run.thread_id))
            turn.notice()

        await interrupted(stage, slow.started, delete)

        assert slow.cleaned_up.is_set()
        assert await store.entries(run.thread) == []
