"""What tests of interrupted turns share: a tool that hangs, and ways to break in on it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.integration.state.stage import Stage
from tests.support.factories import Reply
from tests.support.waiting import wait_until
from threadmark.state import ToolReturned
from threadmark.workers.agents.tool_context import ToolContext
from threadmark.workers.agents.tools import Effect, Tool, tool
from threadmark.workers.turn.turn import Turn

__all__ = ["DONE", "Slow", "cancelled_run", "interrupted", "parallel", "quick"]

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
        return any(each.value == value for each in await stage.entries_of(run, ToolReturned))

    return is_journaled
