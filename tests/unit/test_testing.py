"""`threadmark.testing`, used as an author of agents uses it."""

import doctest
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from threadmark import (
    BadArguments,
    ChatAgent,
    Effect,
    Limits,
    MemoryPolicy,
    NonRetryable,
    RetryPolicy,
    ToolContext,
    ToolTimedOut,
    tool,
)
from threadmark.testing import (
    AgentSession,
    Clock,
    ScriptedModel,
    ScriptExhausted,
    agent_session,
    call,
    run_tool,
    scripted_model,
    tool_context,
    tool_runs,
)


class Bank:
    """The outside world of these tests."""

    def __init__(self) -> None:
        self.payments: dict[str, int] = {}
        self.outages = 0


BANK = Bank()


@tool(effect=Effect.ONCE, needs_approval=True)
async def pay(account: str, amount_cents: int, context: ToolContext) -> dict[str, Any]:
    """Pay an amount to an account."""
    BANK.payments[context.idempotency_key] = amount_cents
    context.emit({"paid": amount_cents})
    return {"account": account, "paid": amount_cents, "at": context.now().isoformat()}


@tool(effect=Effect.PURE, retry=RetryPolicy(attempt_max=3, first_delay_s=3_600, delay_max_s=3_600))
async def balance(account: str) -> int:
    """The balance of an account, in cents."""
    if BANK.outages:
        BANK.outages -= 1
        raise ConnectionError("the bank is away")
    if account == "gone":
        raise NonRetryable("there is no such account")
    return 4_200


@tool(effect=Effect.PURE, timeout_s=0.01)
async def slow(context: ToolContext) -> None:
    """Never returns."""
    import asyncio

    await asyncio.Event().wait()


CLERK = ChatAgent(name="clerk", instructions="You pay.", tools=[pay, balance])


@pytest.fixture(autouse=True)
def bank() -> Bank:
    BANK.payments.clear()
    BANK.outages = 0
    return BANK


async def test_a_tool_runs_alone(tmp_path: Path, bank: Bank) -> None:
    """With a context of the test's making: key, attempt, clock, folder and emitted events."""
    events: list[Any] = []
    clock = Clock(datetime(2026, 5, 1, tzinfo=UTC))
    clock.advance(30)
    context = tool_context(idempotency_key="k-7", attempt=2, data_dir=tmp_path, emitted=events, now=clock)

    assert await run_tool(pay, {"account": "a", "amount_cents": 5}, context) == {
        "account": "a",
        "paid": 5,
        "at": "2026-05-01T00:00:30+00:00",
    }
    assert (bank.payments, events) == ({"k-7": 5}, [{"paid": 5}])


async def test_a_tool_refuses_what_a_model_may_not_send() -> None:
    """Arguments are validated as in a run, and a time-out is one."""
    with pytest.raises(BadArguments, match="`amount_cents` is missing"):
        await run_tool(pay, {"account": "a"})
    with pytest.raises(NonRetryable, match="no such account"):
        await run_tool(balance, {"account": "gone"})
    with pytest.raises(ToolTimedOut):
        await run_tool(slow)


def test_a_context_has_a_folder_of_its_own_and_an_aware_clock() -> None:
    """Nothing of one test is seen by another, and a naive time is refused."""
    assert tool_context().data_dir != tool_context().data_dir
    assert tool_context().now().tzinfo is UTC
    with pytest.raises(ValueError, match="give it a time zone"):
        Clock(datetime(2026, 1, 1))  # noqa: DTZ001


async def test_an_agent_calls_its_tools_and_answers(bank: Bank) -> None:
    """The model is sent the system text, the tools and every message; its calls are performed."""
    model = ScriptedModel([call("balance", account="a"), call("balance", account="gone")], "You have 42.", "Bye.")

    async with AgentSession(CLERK, model) as session:
        turn = await session.say("How much is in a?")
        later = await session.say("Thanks.")

    assert (turn.text, turn.failure, turn.questions) == ("You have 42.", None, ())
    assert turn.results[0] == "4200"
    assert "there is no such account" in turn.results[1]
    assert (later.text, later.results, model.unused) == ("Bye.", (), 0)
    assert [each["role"] for each in model.requests[-1]["messages"]] == [
        "system", "user", "assistant", "tool", "tool", "assistant", "user",
    ]  # fmt: skip
    assert [each["function"]["name"] for each in model.requests[0]["tools"]] == ["pay", "balance"]


async def test_a_person_approves_or_refuses(bank: Bank) -> None:
    """The call is made after the approval alone; a refusal is the model's to explain."""
    payment = call("pay", account="a", amount_cents=5)
    model = ScriptedModel(payment, "Paid.", payment, "Not paid.")

    async with AgentSession(CLERK, model) as session:
        asked = await session.say("Pay 5.")
        (question,) = asked.questions
        assert (question.kind, question.tool, question.arguments) == (
            "approval",
            "pay",
            {"account": "a", "amount_cents": 5},
        )
        assert bank.payments == {}
        assert (await session.approve(question)).text == "Paid."
        assert list(bank.payments.values()) == [5]

        (again,) = (await session.say("Again.")).questions
        refused = await session.refuse(again, "enough")

    assert (refused.text, list(bank.payments.values())) == ("Not paid.", [5])
    assert "enough" in refused.results[-1]


async def test_retries_do_not_wait(bank: Bank) -> None:
    """A policy with an hour between attempts takes no hour in a test, and as many attempts as it says."""
    bank.outages = 2
    async with AgentSession(CLERK, ScriptedModel(call("balance", account="a"), "Fine.")) as session:
        assert (await session.say("?")).results == ("4200",)


async def test_a_limit_fails_the_run() -> None:
    """As it does on a server."""
    agent = ChatAgent(name="short", tools=[balance], limits=Limits(step_count_max=2))
    model = ScriptedModel(*[call("balance", account="a")] * 5)

    async with AgentSession(agent, model) as session:
        turn = await session.say("?")

    assert turn.failure == "The run used its 2 steps."
    assert model.unused > 0


async def test_a_script_that_is_too_short_is_an_error() -> None:
    """And not a failed run that a test may overlook."""
    async with AgentSession(CLERK, ScriptedModel(call("balance", account="a"))) as session:
        with pytest.raises(ScriptExhausted, match="the script has 1 replies"):
            await session.say("?")


async def test_an_agent_with_a_memory_has_one() -> None:
    """In the session's folder, with the namespace of the thread's metadata."""
    agent = ChatAgent(name="memo", memory=MemoryPolicy(namespace=["guests", "{metadata.guest}"]))
    model = ScriptedModel(call("remember", text="likes tea"), "Noted.")

    async with AgentSession(agent, model, metadata={"guest": "g1"}) as session:
        turn = await session.say("I am told she likes tea")

    assert json.loads(turn.results[0])["status"] == "added" or json.loads(turn.results[0])["memory_id"]


async def test_a_closed_session_says_so() -> None:
    """Instead of an attribute error of its inside."""
    with pytest.raises(RuntimeError, match="the session is not open"):
        await AgentSession(CLERK, ScriptedModel()).say("?")


@pytest.mark.parametrize("module", [tool_runs, scripted_model, agent_session], ids=lambda module: module.__name__)
def test_examples_in_docstrings_run(module: Any) -> None:
    """Each public name shows a use that works."""
    found = doctest.testmod(module)

    assert (found.failed, found.attempted > 0) == (0, True)
