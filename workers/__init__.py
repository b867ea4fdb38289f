"""Workers: turns of runs, and what turns are made of. What authors of agents need is here."""

from workers.agents import ChatAgent, Limits, Registry
from workers.dropped_tools import recall_dropped
from workers.tools import (
    DID_NOT_HAPPEN,
    UNKNOWN,
    Effect,
    NonRetryable,
    RetryAfter,
    RetryPolicy,
    Tool,
    ToolContext,
    tool,
)

__all__ = [
    "DID_NOT_HAPPEN",
    "UNKNOWN",
    "ChatAgent",
    "Effect",
    "Limits",
    "NonRetryable",
    "Registry",
    "RetryAfter",
    "RetryPolicy",
    "Tool",
    "ToolContext",
    "recall_dropped",
    "tool",
]
