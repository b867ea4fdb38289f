"""Steps in doubt: what brings them about, and what settles them."""

from pathlib import Path
from typing import Any

import pytest

from tests.conformance.store import Store
from tests.integration.state.interrupting import Slow, interrupted, parallel
from tests.integration.state.stage import open_stage
from threadmark.state import RunStatus, ThreadStatus, ToolReturned
from threadmark.workers.agents.tool_context import ToolContext
from threadmark.workers.agents.tools import Effect, tool


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
    ("resolution", "call_count", "content"),
    [
        ({"outcome": "happened", "result": {"paid": 1}}, 1, '{"paid":1}'),
        ({"outcome": "did_not_happen"}, 2, "paid by attempt 2"),
    ],
)
async def test_a_doubt_is_settled_by_a_person_and_the_same_run_goes_on(
    store: Store, tmp_path: Path, how: str, resolution: dict[str, Any], call_count: int, content: str
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
        assert (await stage.messages(run))[2].content == content
        (result,) = await stage.entries_of(run, ToolReturned)
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
        assert [each.outcome for each in await stage.entries_of(run, ToolReturned)] == ["unknown"]
        assert [wait.status for wait in await store.waits(run)] == ["superseded"]
        assert (await store.thread(run.thread_id)).status is ThreadStatus.IDLE
