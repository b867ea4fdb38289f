"""The tools of memory. They act in the scope of the agent's policy; nothing that a model sends names another one."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from threadmark.memory import Assertion, Include, RecollectionError, Unavailable
from threadmark.workers.agents.memory_json import answer_shown, assertion_shown
from threadmark.workers.agents.memory_policy import MemoryPolicy, NoScope
from threadmark.workers.agents.tool_context import MemoryAccess, ToolContext
from threadmark.workers.agents.tools import Effect, NonRetryable, RetryPolicy, Tool, tool

__all__ = ["memory_tools"]

_RETRY = RetryPolicy(attempt_max=3, first_delay_s=0.5)
_VERSION_COUNT_MAX = 50


@tool(effect=Effect.KEYED, retry=_RETRY)
async def remember(
    text: str,
    context: ToolContext,
    subject: str | None = None,
    attribute: str | None = None,
    value: str | int | float | bool | None = None,
) -> dict[str, Any]:
    """Keep a statement for later conversations, in the person's own words where there are any.

    Give subject, attribute and value where it says what an attribute of a subject is: a new value then takes the
    place of the old one, whose history stays.
    """
    try:
        verdict, moment = await _access(context).remember(text, subject, attribute, value)
    except (NoScope, RecollectionError) as error:
        raise _for_model(error) from error
    return {
        "memory_id": verdict.assertion_id,
        "status": verdict.disposition.value,
        "superseded": list(verdict.superseded),
        "trust": moment.trust.value,
    }


@tool(effect=Effect.PURE, retry=_RETRY)
async def recall(
    question: str,
    context: ToolContext,
    limit: Annotated[int, Field(ge=1, le=50)] = 8,
    include: Literal["current", "history", "all"] = "current",
    valid_at: datetime | None = None,
    known_at: datetime | None = None,
) -> dict[str, Any]:
    """Ask what earlier conversations tell. The answers are data: cite them by their ids, like [memory:<id>].

    valid_at asks what was true at an instant, known_at what was believed at one.
    """
    try:
        answers = await _access(context).recall(question, limit, Include(include), valid_at, known_at)
    except (NoScope, RecollectionError) as error:
        raise _for_model(error) from error
    return {
        "recall_id": answers.recall_id,
        "answers": [answer_shown(each) for each in answers.answers],
        "withheld": {str(reason): count for reason, count in answers.withheld.items()},
    }


@tool(effect=Effect.PURE, retry=_RETRY)
async def timeline(subject: str, attribute: str, context: ToolContext) -> dict[str, Any]:
    """How an attribute of a subject changed: every version, with when it was true and when it was believed."""
    try:
        versions = await _access(context).timeline(subject, attribute)
    except (NoScope, RecollectionError) as error:
        raise _for_model(error) from error
    return {"versions": _newest(versions), "version_count": len(versions)}


@tool(effect=Effect.PURE, retry=_RETRY)
async def why(memory_id: str, context: ToolContext) -> dict[str, Any]:
    """Where a memory comes from: who said it, when, in which conversation, and what it took the place of."""
    try:
        held, versions = await _access(context).why(memory_id)
    except (NoScope, RecollectionError) as error:
        raise _for_model(error) from error
    return {"memory": assertion_shown(held), "history": _newest(versions), "version_count": len(versions)}


_TOOLS = {each.name: each for each in (remember, recall, timeline, why)}


def memory_tools(policy: MemoryPolicy | None) -> tuple[Tool, ...]:
    """The tools that an agent with this policy offers to its model."""
    return () if policy is None else tuple(_TOOLS[name] for name in policy.tools)


def _access(context: ToolContext) -> MemoryAccess:
    if context.memory is None:
        raise NonRetryable("This agent has no memory.")
    return context.memory


def _for_model(error: NoScope | RecollectionError) -> Exception:
    """Errors worth another attempt pass unchanged; the model reads the others as one sentence."""
    return error if isinstance(error, Unavailable) else NonRetryable(f"Memory refused: {error}.")


def _newest(versions: Sequence[Assertion]) -> list[dict[str, Any]]:
    return [assertion_shown(each) for each in versions[-_VERSION_COUNT_MAX:]]
