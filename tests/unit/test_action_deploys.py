"""A deploy between a person's answer and the turn that acts on it."""

from typing import Any

import msgspec
import pytest

from tests.support.factories import Story, asked, replied
from tests.support.next_actions import act, answered, only
from threadmark.state import RunOutcome, RunStatus, StepIntended, ThreadStatus, ToolReturned, WaitOpened
from threadmark.workers.agents.agent import ChatAgent
from threadmark.workers.agents.tools import Effect, Tool, tool
from threadmark.workers.turn.action import Settle

WAITING = Settle(
    RunOutcome(status=RunStatus.SUCCESS, thread_status=ThreadStatus.INTERRUPTED, reason="waiting for a person")
)


@tool(effect=Effect.ONCE, needs_approval=True, name="refund")
async def changed_refund(order: str) -> str:
    """Pay back, by other arguments."""
    return order


@tool(effect=Effect.KEYED, needs_approval=True, name="refund")
async def other_refund(cents: int = 1) -> int:
    """Pay back, with another effect."""
    return cents


@tool(effect=Effect.ONCE, needs_approval=True, name="pay_back", aliases=("refund",))
async def renamed_refund(cents: int = 1) -> int:
    """Pay back, under another name."""
    return cents


def approved(answer: Any = True) -> tuple[Story, WaitOpened]:
    """A call that a person has answered, before the turn that acts on it."""
    story = Story.begun(replied(asked("refund", cents=5)))
    wait = only(act(story))
    assert isinstance(wait, WaitOpened)
    return story.tell(wait, answered(wait, answer)), wait


@pytest.mark.parametrize("tools", [[], [changed_refund], [other_refund]], ids=["gone", "changed", "effect"])
def test_a_deploy_does_not_use_up_an_approval(tools: list[Tool]) -> None:
    """It came between the answer and the turn: a person is asked anew, under an id of its own."""
    story, wait = approved()

    again = only(act(story, ChatAgent(name="chat", tools=tools)))

    assert isinstance(again, WaitOpened)
    assert (wait.effect, again.kind) == ("once", "approval")
    assert again.wait_id != wait.wait_id
    assert act(story.tell(again), ChatAgent(name="chat", tools=tools)) == WAITING


def test_an_alias_takes_an_approved_call_up() -> None:
    """The tool has another name now, and declares the old one."""
    story, _ = approved()

    assert isinstance(only(act(story, ChatAgent(name="chat", tools=[renamed_refund]))), StepIntended)


def test_an_effect_that_a_person_named_is_approved() -> None:
    """They have seen that it changed."""
    agent = ChatAgent(name="chat", tools=[other_refund])
    named, _ = approved({"approve": True, "effect": "keyed"})
    wrong, _ = approved({"approve": True, "effect": "pure"})

    assert isinstance(only(act(named, agent)), StepIntended)
    assert isinstance(only(act(wrong, agent)), WaitOpened)


def test_a_question_of_an_older_version_is_not_judged_by_its_effect() -> None:
    """It was asked without one."""
    _, wait = approved()
    older = Story.begun(replied(asked("refund", cents=5)))
    older.tell(msgspec.structs.replace(wait, effect=None), answered(wait, True))

    assert isinstance(only(act(older, ChatAgent(name="chat", tools=[other_refund]))), StepIntended)


@pytest.mark.parametrize(
    ("answer", "outcome"), [(False, "refused"), ({"approve": False}, "refused"), ({"result": {"by": "hand"}}, "ok")]
)
@pytest.mark.parametrize("tools", [[], [changed_refund]], ids=["gone", "changed"])
def test_a_person_closes_a_call_that_cannot_be_made(tools: list[Tool], answer: object, outcome: str) -> None:
    """By a refusal, or by a result of their own; nothing is asked or called."""
    story, _ = approved(answer)

    entry = only(act(story, ChatAgent(name="chat", tools=tools)))

    assert isinstance(entry, ToolReturned)
    assert (entry.outcome, entry.resolved_by) == (outcome, "ann")
    assert entry.value == (answer["result"] if isinstance(answer, dict) and "result" in answer else None)
