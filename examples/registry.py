"""The agents that a fresh server offers (`THREADMARK_AGENTS=threadmark.examples.registry:registry`)."""

from threadmark import Registry
from threadmark.examples.chat import chat_agent
from threadmark.examples.memo import memo_agent
from threadmark.examples.refund import refund_agent

__all__ = ["registry"]

registry = Registry([chat_agent, refund_agent, memo_agent])
