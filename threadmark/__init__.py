"""Threadmark: a self-hosted server for chat agents. The names here are what authors of agents need.

    from threadmark import ChatAgent, Effect, Registry, tool

    @tool(effect=Effect.PURE)
    async def add(a: int, b: int) -> int:
        \"""Add two whole numbers.\"""
        return a + b

    registry = Registry([ChatAgent(name="adder", instructions="Be brief.", tools=[add])])

`THREADMARK_AGENTS=module:registry` offers it. `threadmark.testing` runs agents and tools in unit tests. Every other
module is the server's own and may change in any version.
"""

from typing import TYPE_CHECKING

from threadmark.lazy import lazy_exports

if TYPE_CHECKING:
    from threadmark.compaction.model.policy import Policy, SummariserKind
    from threadmark.memory.model.provenance import Trust
    from threadmark.workers.agents.agent import ChatAgent, Limits, Registry
    from threadmark.workers.agents.compaction_policy import CompactionPolicy
    from threadmark.workers.agents.definition_errors import DefinitionRefused
    from threadmark.workers.agents.drop_tools import recall_dropped
    from threadmark.workers.agents.memory_policy import MemoryPolicy
    from threadmark.workers.agents.parameters import BadArguments
    from threadmark.workers.agents.tool_context import JSON, ToolContext
    from threadmark.workers.agents.tools import (
        DID_NOT_HAPPEN,
        UNKNOWN,
        Effect,
        NonRetryable,
        RetryAfter,
        RetryPolicy,
        Tool,
        ToolTimedOut,
        Verdict,
        Verifier,
        tool,
    )
else:
    __getattr__, __dir__ = lazy_exports(__name__, __file__)

__all__ = [
    "DID_NOT_HAPPEN",
    "JSON",
    "UNKNOWN",
    "BadArguments",
    "ChatAgent",
    "CompactionPolicy",
    "DefinitionRefused",
    "Effect",
    "Limits",
    "MemoryPolicy",
    "NonRetryable",
    "Policy",
    "Registry",
    "RetryAfter",
    "RetryPolicy",
    "SummariserKind",
    "Tool",
    "ToolContext",
    "ToolTimedOut",
    "Trust",
    "Verdict",
    "Verifier",
    "recall_dropped",
    "tool",
]
