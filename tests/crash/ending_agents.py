"""An agent whose tool ends a loop of its own process, as a defect in a library might."""

import asyncio

from threadmark.workers.agents.agent import ChatAgent, Registry
from threadmark.workers.agents.tools import Effect, tool

__all__ = ["registry"]


@tool(effect=Effect.PURE)
async def end_loop(name: str) -> str:
    """Cancel the loop of this name."""
    for task in asyncio.all_tasks():
        if task.get_name() == name:
            task.cancel()
    return name


registry = Registry([ChatAgent(name="chat", tools=[end_loop])])
