"""One tool, called as a step calls it, without a model, a journal or a database."""

import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

from threadmark.workers.agents.tool_context import ToolContext
from threadmark.workers.agents.tools import Tool

__all__ = ["Clock", "EmittedEvents", "run_tool", "tool_context"]

#: What a tool has emitted, in order.
EmittedEvents: TypeAlias = list[Any]

_START = datetime(2026, 1, 1, 9, 0, tzinfo=UTC)


class Clock:
    """A clock that stands still until the test moves it.

    >>> clock = Clock()
    >>> clock.advance(90)
    >>> clock().isoformat()
    '2026-01-01T09:01:30+00:00'
    """

    def __init__(self, start: datetime = _START) -> None:
        """Raises ValueError for a naive `start`: tools are given aware times."""
        if start.tzinfo is None:
            raise ValueError(f"start is {start!r}; give it a time zone, as in datetime(2026, 1, 1, tzinfo=UTC)")
        self._now = start.astimezone(UTC)

    def __call__(self) -> datetime:
        """The time, aware and in UTC."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock, backwards too: a tool may meet both."""
        self._now += timedelta(seconds=seconds)


def tool_context(
    *,
    thread_id: str = "thread-1",
    run_id: str = "run-1",
    step_key: str = "step-1",
    idempotency_key: str = "key-1",
    attempt: int = 1,
    data_dir: Path | None = None,
    emitted: EmittedEvents | None = None,
    now: Callable[[], datetime] | None = None,
) -> ToolContext:
    """A context to call a tool with. `emitted` gets what the tool emits; `data_dir` is a new folder unless given.

    Two calls with the same `idempotency_key` are two attempts of one step, as after a crash.

    >>> events: EmittedEvents = []
    >>> context = tool_context(attempt=2, emitted=events)
    >>> context.emit({"progress": 1})
    >>> context.attempt, events
    (2, [{'progress': 1}])
    """
    return ToolContext(
        thread_id=thread_id,
        run_id=run_id,
        step_key=step_key,
        idempotency_key=idempotency_key,
        attempt=attempt,
        data_dir=Path(tempfile.mkdtemp(prefix="threadmark-tool-")) if data_dir is None else data_dir,
        emit=([] if emitted is None else emitted).append,
        now=Clock() if now is None else now,
    )


async def run_tool(tool: Tool, arguments: Mapping[str, Any] | None = None, context: ToolContext | None = None) -> Any:
    """Call a tool with arguments as a model sends them (JSON), and return what it returns.

    Raises BadArguments for arguments that the tool refuses, ToolTimedOut, and whatever the tool raises. An approval is
    not asked for, and nothing is retried: those are the run's; see `AgentSession`.

    >>> import asyncio
    >>> from threadmark import Effect, tool
    >>> @tool(effect=Effect.PURE)
    ... async def double(number: int) -> int:
    ...     return 2 * number
    >>> asyncio.run(run_tool(double, {"number": 4}))
    8
    """
    return await tool.perform(tool.arguments(arguments or {}), tool_context() if context is None else context)
