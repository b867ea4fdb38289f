"""An agent with a memory and a tool that ends when it is let: for tests that kill the server in between."""

import asyncio

from threadmark.workers.agents.agent import ChatAgent, Registry
from threadmark.workers.agents.memory_policy import MemoryPolicy
from threadmark.workers.agents.tool_context import ToolContext
from threadmark.workers.agents.tools import Effect, tool

__all__ = ["GO", "registry"]

#: The file in the data directory that lets the tool end.
GO = "go"


@tool(effect=Effect.PURE, timeout_s=600)
async def nap(context: ToolContext) -> str:
    """Sleep until the file is there."""
    while not (context.data_dir / GO).exists():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.02)
    return "awake"


registry = Registry([ChatAgent(name="napper", tools=[nap], memory=MemoryPolicy(namespace=["nappers"]))])
