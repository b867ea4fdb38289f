"""A plain chat agent, with one tool that changes nothing."""

from threadmark import ChatAgent, Effect, tool

__all__ = ["add", "chat_agent"]


@tool(effect=Effect.PURE)
async def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


chat_agent = ChatAgent(
    name="chat",
    description="Talks; adds whole numbers.",
    instructions="You are a helpful assistant. Answer briefly.",
    tools=(add,),
)
