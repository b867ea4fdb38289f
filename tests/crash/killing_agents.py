"""An agent with a tool that kills its process, as a defect in a native library might, and one that takes its time."""

import asyncio
import os
import signal

from threadmark.workers.agents.agent import ChatAgent, Registry
from threadmark.workers.agents.tools import Effect, tool

__all__ = ["registry"]


@tool(effect=Effect.PURE)
async def die() -> str:
    """Never return."""
    os.kill(os.getpid(), signal.SIGKILL)
    return "dead"


@tool(effect=Effect.PURE)
async def take_time(seconds: float) -> str:
    """A long step."""
    await asyncio.sleep(seconds)
    return "done"


registry = Registry([ChatAgent(name="chat", tools=[die, take_time])])
