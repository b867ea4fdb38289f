"""The agents that a fresh server offers (`THREADMARK_AGENTS=examples.registry:registry`)."""

from examples.chat import chat_agent
from examples.memo import memo_agent
from examples.refund import refund_agent
from workers.agents import Registry

__all__ = ["registry"]

registry = Registry([chat_agent, refund_agent, memo_agent])
