"""An agent whose tool blocks its process's event loop."""

import time

from threadmark.workers.agents.agent import ChatAgent, Registry
from threadmark.workers.agents.tools import Effect, tool

__all__ = ["registry"]


@tool(effect=Effect.KEYED, timeout_s=120)
async def block(seconds: float) -> str:
    """Hold the event loop up, as a library that knows no await does."""
    time.sleep(seconds)  # noqa: ASYNC251 - what is tested
    return "blocked"


registry = Registry([ChatAgent(name="chat", tools=[block])])
