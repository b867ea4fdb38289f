"""Workers: turns of runs, and what turns are made of. What authors of agents need is here."""

from typing import TYPE_CHECKING

from threadmark.lazy import lazy_exports

if TYPE_CHECKING:
    from threadmark.workers.agents.agent import ChatAgent, Limits, Registry
    from threadmark.workers.agents.drop_tools import recall_dropped
    from threadmark.workers.agents.tools import (
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
else:
    __getattr__, __dir__ = lazy_exports(__name__, __file__)

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
