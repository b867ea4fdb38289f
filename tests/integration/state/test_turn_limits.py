"""Bounds of a turn: what a result may weigh, what a run may use, and what a tool may throw."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.store import Store
from tests.integration.state.stage import Clock, open_stage
from tests.support.factories import Reply
from threadmark.state import ModelReplied, RunStatus, ToolReturned, Usage
from threadmark.workers.agents.tools import Effect, RetryPolicy, tool
from threadmark.workers.turn.step_execution import RESULT_BYTES_MAX

DONE = Reply("All done.")
CALLING = [Reply("Let me see.", [("act", {})]), DONE]
#: As JSON text has two quotes.
LONGEST = RESULT_BYTES_MAX - 2
ENDLESS = RetryPolicy(attempt_max=None)


@pytest.mark.parametrize("length", [LONGEST - 1, LONGEST])
async def test_a_result_up_to_the_limit_is_stored(store: Store, tmp_path: Path, length: int) -> None:
    """The model receives it whole (C07)."""

    @tool(effect=Effect.KEYED, retry=ENDLESS)
    async def act() -> str:
        """Say much."""
        return "x" * length

    async with open_stage(store, tmp_path, CALLING, [act]) as stage:
        run = await stage.say()

        assert (await stage.play_out(run)).status is RunStatus.SUCCESS
        assert (await stage.messages(run))[2].content == "x" * length


@pytest.mark.parametrize("effect", [Effect.PURE, Effect.KEYED, Effect.ONCE])
@pytest.mark.parametrize("length", [LONGEST + 1, 32 * 1024 * 1024])
async def test_a_result_over_the_limit_fails_once_and_says_why(
    store: Store, tmp_path: Path, effect: Effect, length: int
) -> None:
    """One attempt, a failure that names step, size and limit, a run that ends, a thread that goes on (C07)."""
    call_count = 0

    @tool(effect=effect, retry=ENDLESS)
    async def act() -> str:
        """Say too much."""
        nonlocal call_count
        call_count += 1
        return "x" * length

    async with open_stage(store, tmp_path, CALLING, [act]) as stage:
        run = await stage.say()
        assert (await stage.play_out(run)).status is RunStatus.SUCCESS

        (result,) = await stage.entries_of(run, ToolReturned)
        assert (call_count, result.outcome, result.value) == (1, "error", None)
        for part in ("tool-1-0", str(length + 2), str(RESULT_BYTES_MAX), "payload_too_large"):
            assert part in result.failure.message
        assert (await stage.play_out(await stage.say("again", thread_id=run.thread_id))).status is RunStatus.SUCCESS


async def test_the_limit_is_in_bytes_and_not_in_characters(store: Store, tmp_path: Path) -> None:
    """A text of many-byte characters weighs what it weighs on disk."""

    @tool(effect=Effect.PURE)
    async def act() -> str:
        """Say much in few characters."""
        return "é" * (LONGEST // 2 + 1)

    async with open_stage(store, tmp_path, CALLING, [act]) as stage:
        run = await stage.say()
        await stage.play_out(run)

        assert [each.outcome for each in await stage.entries_of(run, ToolReturned)] == ["error"]


@pytest.mark.parametrize("value", [{1: "a"}, {(1, 2)}, (1, 2), b"\x00\xff", "\ud800"])
async def test_a_result_that_would_not_come_back_is_refused_with_its_place(
    store: Store, tmp_path: Path, value: Any
) -> None:
    """It is an error now, and not a silent change after the next restart (C06)."""

    @tool(effect=Effect.ONCE)
    async def act() -> Any:
        """Give back something odd."""
        return {"items": [value]}

    async with open_stage(store, tmp_path, CALLING, [act]) as stage:
        run = await stage.say()

        assert (await stage.play_out(run)).status is RunStatus.SUCCESS
        (result,) = await stage.entries_of(run, ToolReturned)
        assert (result.outcome, result.failure.error) == ("error", "ResultRefused")
        assert "result.items[0]" in result.failure.message


@pytest.mark.parametrize(
    "message",
    ["", "half \udcff", "x" * 10_000_000, "abc\x00def", "line\r\nline"],
    ids=["empty", "surrogate", "long", "nul", "lines"],
)
async def test_whatever_a_tool_says_when_it_fails_can_be_recorded(store: Store, tmp_path: Path, message: str) -> None:
    """A path that is no text, a body as message: the failure must not break the turn that records it."""

    @tool(effect=Effect.KEYED, retry=RetryPolicy(attempt_max=2))
    async def act() -> str:
        """Fail."""
        raise OSError(message)

    async with open_stage(store, tmp_path, CALLING, [act]) as stage:
        run = await stage.say()

        assert (await stage.play_out(run)).status is RunStatus.SUCCESS
        (result,) = await stage.entries_of(run, ToolReturned)
        assert result.outcome == "error"
        assert 0 < len(result.failure.message.encode()) <= 4096


@pytest.mark.parametrize("effect", [Effect.PURE, Effect.KEYED])
async def test_a_tool_that_is_cancelled_from_inside_has_failed(store: Store, tmp_path: Path, effect: Effect) -> None:
    """A task of its own was cancelled and it waited for that: nobody cancelled the run (C37)."""

    @tool(effect=effect, retry=RetryPolicy(attempt_max=2))
    async def act() -> str:
        """Wait for what was cancelled."""
        inner = asyncio.ensure_future(asyncio.Event().wait())
        inner.cancel()
        await inner
        return "never"

    async with open_stage(store, tmp_path, CALLING, [act]) as stage:
        run = await stage.say()

        assert (await stage.play_out(run)).status is RunStatus.SUCCESS
        (result,) = await stage.entries_of(run, ToolReturned)
        assert (result.outcome, result.failure.error) == ("error", "CancelledError")


async def test_a_once_tool_that_is_cancelled_from_inside_is_in_doubt(store: Store, tmp_path: Path) -> None:
    """As with every failure that does not say that nothing happened."""

    @tool(effect=Effect.ONCE)
    async def act() -> str:
        """Be cancelled."""
        raise asyncio.CancelledError

    async with open_stage(store, tmp_path, CALLING, [act]) as stage:
        run = await stage.say()

        assert (await stage.play_out(run)).parked == "in_doubt"


@pytest.mark.parametrize(
    ("limits", "status", "reason", "step_count"),
    [
        ({"step_count_max": 3}, RunStatus.ERROR, "steps", 3),
        ({"token_count_max": 25}, RunStatus.ERROR, "tokens", 3),
    ],
)
async def test_a_loop_is_stopped_by_its_budget(
    store: Store, tmp_path: Path, limits: dict[str, Any], status: RunStatus, reason: str, step_count: int
) -> None:
    """A model that would call for ever; the transcript it leaves is valid, and the thread goes on."""

    @tool(effect=Effect.PURE)
    async def act() -> str:
        """Do nothing."""
        return "ok"

    endless = [Reply("Again.", [("act", {})], usage=Usage(10, 5))] * 100
    async with open_stage(store, tmp_path, endless, [act], **limits) as stage:
        run = await stage.say()

        ended = await stage.play_out(run)

        assert (ended.status, ended.reason) == (status, reason)
        assert ended.failure is not None
        assert ended.failure.error == "BudgetExceeded"
        steps = len(await stage.entries_of(run, ModelReplied)) + len(await stage.entries_of(run, ToolReturned))
        assert steps >= step_count
        assert (await stage.state(run)).open_calls == []
        again = await stage.play_out(await stage.say("again", thread_id=run.thread_id))
        assert again.reason == reason


@pytest.mark.parametrize("limits", [{"step_count_max": 3}, {"token_count_max": 25}])
async def test_each_run_has_a_budget_of_its_own(store: Store, tmp_path: Path, limits: dict[str, Any]) -> None:
    """A run that goes on where another one was stopped by its budget gets further."""

    @tool(effect=Effect.PURE)
    async def act() -> str:
        """Do nothing."""
        return "ok"

    replies = [Reply("Again.", [("act", {})]), Reply("Again.", [("act", {})]), DONE]
    async with open_stage(store, tmp_path, replies, [act], **limits) as stage:
        run = await stage.say()
        assert (await stage.play_out(run)).status is RunStatus.ERROR

        assert (await stage.play_out(await stage.go_on(run))).status is RunStatus.SUCCESS


async def test_a_run_is_stopped_in_the_middle_of_a_step_when_its_time_is_up(store: Store, tmp_path: Path) -> None:
    """The tool is cancelled, its call gets a result, and the run ends by its wall time."""
    clocks: list[Clock] = []
    cancelled = asyncio.Event()

    @tool(effect=Effect.PURE)
    async def act() -> str:
        """Take for ever."""
        clocks[0].pass_s(100)
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return "never"

    async with open_stage(store, tmp_path, CALLING, [act], wall_time_s_max=0.05) as stage:
        clocks.append(stage.clock)
        run = await stage.say()

        ended = await stage.play_out(run)

        assert (ended.status, ended.reason) == (RunStatus.TIMEOUT, "wall_time")
        assert cancelled.is_set()
        assert [each.outcome for each in await stage.entries_of(run, ToolReturned)] == ["cancelled"]
        assert (await stage.state(run)).open_calls == []
