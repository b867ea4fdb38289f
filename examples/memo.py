"""A chat agent with a memory: what one thread tells it, every other thread of its may ask."""

from threadmark import ChatAgent, MemoryPolicy

__all__ = ["memo_agent"]

memo_agent = ChatAgent(
    name="memo",
    description="Remembers across conversations, and says where it knows things from.",
    instructions="You are a helpful assistant with a memory. Answer briefly, and cite the notes that you use.",
    memory=MemoryPolicy(),
)
