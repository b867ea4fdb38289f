"""Agents and tools in unit tests, without a server: a context for one tool, a scripted model, a clock, and a session
that runs an agent on the real engine in a temporary folder.

    from threadmark.testing import AgentSession, Clock, ScriptedModel, call, run_tool, tool_context
"""

from typing import TYPE_CHECKING

from threadmark.lazy import lazy_exports

if TYPE_CHECKING:
    from threadmark.testing.agent_session import AgentSession, Question, Turn
    from threadmark.testing.scripted_model import ScriptedModel, ScriptExhausted, call
    from threadmark.testing.tool_runs import Clock, EmittedEvents, run_tool, tool_context
else:
    __getattr__, __dir__ = lazy_exports(__name__, __file__)

__all__ = [
    "AgentSession",
    "Clock",
    "EmittedEvents",
    "Question",
    "ScriptExhausted",
    "ScriptedModel",
    "Turn",
    "call",
    "run_tool",
    "tool_context",
]
