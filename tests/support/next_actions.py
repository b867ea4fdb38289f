"""For tests of what a run does next: an agent with one tool of each effect, and the question itself."""

from typing import Any

from tests.support.factories import NOW_US, Story, a_run
from threadmark.state import Entry, Failure, StepIntended, StepKey, ToolReturned, WaitAnswered, WaitOpened
from threadmark.workers.agents.agent import ChatAgent, Limits
from threadmark.workers.agents.tools import Effect, tool
from threadmark.workers.turn.action import Action, Note, next_action

__all__ = ["FAILURE", "LATER_US", "act", "an_agent", "answered", "intended", "only", "outcomes"]

FAILURE = Failure("Broken", "it broke")
#: A minute after stories begin.
LATER_US = NOW_US + 60_000_000


@tool(effect=Effect.PURE)
async def look(order: str = "") -> str:
    """Look."""
    return order


@tool(effect=Effect.KEYED)
async def mail(order: str = "") -> str:
    """Mail."""
    return order


@tool(effect=Effect.ONCE)
async def pay(cents: int = 1) -> int:
    """Pay."""
    return cents


@tool(effect=Effect.ONCE, needs_approval=True)
async def refund(cents: int = 1) -> int:
    """Pay back, if a person agrees."""
    return cents


@tool(effect=Effect.PURE, needs_approval=True)
async def peek(order: str = "") -> str:
    """Look at what is secret, if a person agrees."""
    return order


def an_agent(**limits: Any) -> ChatAgent:
    """An agent with these tools and limits."""
    return ChatAgent(name="chat", tools=[look, mail, pay, refund, peek], limits=Limits(**limits))


def act(
    story: Story, agent: ChatAgent | None = None, *, fence: int | None = None, now_us: int = LATER_US, **run: Any
) -> Action:
    """The action that follows the story, under the fence of its last turn; `run` changes the run."""
    under = story.fence if fence is None else fence
    return next_action(story.state, agent or an_agent(), a_run(**run), fence=under, now_us=now_us)


def intended(key: str = "tool-1-0", effect: str = "once") -> StepIntended:
    """The entry that a call is about to be made."""
    return StepIntended(step_key=StepKey(key), effect=effect, idempotency_key="k")


def outcomes(action: Action) -> list[str]:
    """The outcomes of the results that an action notes."""
    assert isinstance(action, Note)
    return [entry.outcome for entry in action.entries if isinstance(entry, ToolReturned)]


def only(action: Action) -> Entry:
    """The one entry that an action notes."""
    assert isinstance(action, Note)
    (entry,) = action.entries
    return entry


def answered(wait: Entry, value: Any) -> WaitAnswered:
    """The answer to a wait."""
    assert isinstance(wait, WaitOpened)
    return WaitAnswered(
        wait_id=wait.wait_id, step_key=wait.step_key, value=value, answered_by="ann", answered_at_us=NOW_US
    )
