"""Tools: the schema that types make, validation, performing, retries."""

import asyncio
import enum
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
import pytest

from threadmark.workers.agents.agent import AgentRefused, ChatAgent
from threadmark.workers.agents.tool_context import JSON, ToolContext
from threadmark.workers.agents.tools import (
    DID_NOT_HAPPEN,
    UNKNOWN,
    BadArguments,
    Effect,
    NonRetryable,
    RetryAfter,
    RetryPolicy,
    Tool,
    ToolRefused,
    ToolTimedOut,
    Verdict,
    tool,
)


class Size(enum.StrEnum):
    SMALL = "small"
    LARGE = "large"


class Address(pydantic.BaseModel):
    street: str
    zip_code: str = ""


@tool(effect=Effect.KEYED)
async def ship(
    order_id: str,
    size: Size,
    to: Address,
    context: ToolContext,
    on: date | None = None,
    count: Annotated[int, pydantic.Field(ge=1, description="how many")] = 1,
) -> dict[str, JSON]:
    """Ship an order.

    Twice is once.
    """
    return {"order_id": order_id, "size": size, "street": to.street, "count": count, "key": context.idempotency_key}


def a_context(**changes: Any) -> ToolContext:
    values: dict[str, Any] = {
        "thread_id": "t",
        "run_id": "r",
        "step_key": "tool-1-0",
        "idempotency_key": "k",
        "attempt": 1,
        "data_dir": Path(),
        "emit": lambda _: None,
        "now": lambda: datetime(2026, 1, 1, tzinfo=UTC),
    }
    return ToolContext(**(values | changes))


def test_a_tool_is_described_by_its_function() -> None:
    """Name, description and schema come from the function; the context is no part of them."""
    assert ship.name == "ship"
    assert ship.description == "Ship an order.\n\nTwice is once."
    assert ship.effect is Effect.KEYED
    assert list(ship.parameters["properties"]) == ["order_id", "size", "to", "on", "count"]
    assert ship.parameters["required"] == ["order_id", "size", "to"]
    assert ship.parameters["additionalProperties"] is False
    assert ship.parameters["properties"]["count"] == {
        "type": "integer",
        "minimum": 1,
        "default": 1,
        "description": "how many",
    }
    assert ship.definition["type"] == "function"
    assert ship.definition["function"]["parameters"] is ship.parameters


def test_a_tool_without_parameters_has_an_empty_schema() -> None:
    """A model may call it with `{}` and with nothing else."""

    @tool(effect="pure")
    async def ping() -> str:
        return "pong"

    assert ping.parameters == {"additionalProperties": False, "properties": {}, "type": "object"}
    assert ping.arguments({}) == {}
    assert "description" not in ping.definition["function"]


def test_parameter_names_may_be_any_python_name() -> None:
    """Names that a validation library keeps for itself are parameters like any other."""

    @tool(effect=Effect.PURE)
    async def look(schema: str, _id: int, model_config: str, p0: str, json: str = "x") -> str:
        return schema

    assert list(look.parameters["properties"]) == ["schema", "_id", "model_config", "p0", "json"]
    raw = {"schema": "a", "_id": 1, "model_config": "b", "p0": "c"}
    assert look.arguments(raw) == {**raw, "json": "x"}


def test_arguments_become_typed_values_with_defaults() -> None:
    """JSON spellings of dates, enums and models become those; what is left out has its default."""
    arguments = ship.arguments({"order_id": "A1", "size": "large", "to": {"street": "S"}, "on": "2026-02-03"})

    assert arguments == {
        "order_id": "A1",
        "size": Size.LARGE,
        "to": Address(street="S"),
        "on": date(2026, 2, 3),
        "count": 1,
    }


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"order_id": 5}, r"`order_id` is 5: input should be a valid string"),
        ({"count": "5"}, r'`count` is "5": input should be a valid integer'),
        ({"count": True}, r"`count` is true: input should be a valid integer"),
        ({"count": 0}, r"`count` is 0: input should be greater than or equal to 1"),
        ({"size": "medium"}, r"`size` is \"medium\": input should be 'small' or 'large'"),
        ({"to": {}}, r"`to.street` is missing"),
        ({"ammount": 1}, r"`ammount` is not a parameter; the parameters are order_id, size, to, on, count"),
        ({"context": {}}, r"`context` is not a parameter"),
        ({"order_id": "\ud800"}, r"lone surrogate"),
        ({"order_id": ["x" * 500]}, r"x…: input should be"),
    ],
)
def test_bad_arguments_name_the_parameter_and_the_mistake(change: dict[str, Any], sentence: str) -> None:
    """The error tells the model what to change; nothing is converted silently."""
    raw = {"order_id": "A1", "size": "small", "to": {"street": "S"}} | change

    with pytest.raises(BadArguments, match=sentence) as caught:
        ship.arguments(raw)

    assert len(str(caught.value)) < 300


def test_many_mistakes_are_reported_together_and_bounded() -> None:
    """All mistakes come in one sentence, so that one more turn can put them right; a flood is cut short."""
    with pytest.raises(BadArguments) as caught:
        ship.arguments({f"x{number}": 1 for number in range(50)})

    assert caught.value.mistakes[:2] == ["`order_id` is missing", "`size` is missing"]
    assert caught.value.mistakes[-1] == "and 45 more"


async def test_a_tool_is_handed_its_context() -> None:
    """The function gets the validated arguments and the context, under the name it chose."""
    arguments = ship.arguments({"order_id": "A1", "size": "small", "to": {"street": "S"}})

    result = await ship.perform(arguments, a_context(idempotency_key="k1"))

    assert result == {"order_id": "A1", "size": "small", "street": "S", "count": 1, "key": "k1"}


async def test_a_tool_that_does_not_return_in_time_is_stopped() -> None:
    """The time-out is an error of its own, since what the tool did is not known."""
    stopped = asyncio.Event()

    @tool(effect=Effect.ONCE, timeout_s=0.01)
    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    with pytest.raises(ToolTimedOut, match=r"tool 'hang' did not return within 0\.01 s"):
        await hang.perform({}, a_context())

    assert stopped.is_set()


async def test_a_time_out_inside_the_tool_is_the_tool_s_own() -> None:
    """A socket that timed out is not taken for the tool's time-out."""

    @tool(effect=Effect.PURE)
    async def read() -> None:
        raise TimeoutError("the socket")

    with pytest.raises(TimeoutError, match="the socket"):
        await read.perform({}, a_context())


async def test_a_cancellation_passes_through() -> None:
    """A cancelled tool call is seen as cancelled, not as failed."""
    started = asyncio.Event()

    @tool(effect=Effect.PURE)
    async def hang() -> None:
        started.set()
        await asyncio.Event().wait()

    call = asyncio.create_task(hang.perform({}, a_context()))
    await started.wait()
    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call


async def test_a_verifier_says_what_became_of_a_call() -> None:
    """A verifier answers with the result, `DID_NOT_HAPPEN` or `UNKNOWN`."""

    async def look_up(arguments: Mapping[str, Any], context: ToolContext) -> Any:
        return {"yes": {"paid": True}, "no": DID_NOT_HAPPEN}.get(arguments["order_id"], UNKNOWN)

    @tool(effect=Effect.ONCE, verify=look_up)
    async def pay(order_id: str) -> dict[str, bool]:
        return {"paid": True}

    assert pay.verify is not None
    assert [await pay.verify({"order_id": each}, a_context()) for each in ("yes", "no", "?")] == [
        {"paid": True},
        Verdict.DID_NOT_HAPPEN,
        Verdict.UNKNOWN,
    ]


def test_delays_grow_to_a_bound_and_chance_only_shortens_them() -> None:
    """Delay n is the first one times factor^(n-1), at most `delay_max_s`; jitter takes away its part at most."""
    policy = RetryPolicy(first_delay_s=1, factor=3, delay_max_s=20, jitter=0.5)

    assert [policy.delay_s(attempt, 0) for attempt in (1, 2, 3, 4, 10**9)] == [1, 3, 9, 20, 20]
    assert policy.delay_s(2, 0.999999) == pytest.approx(1.5, rel=1e-3)


def test_attempts_are_counted_from_one() -> None:
    """`attempt_max` counts the first attempt; without it there is always another."""
    assert [RetryPolicy(attempt_max=2).allows(attempt) for attempt in (1, 2, 3)] == [True, True, False]
    assert RetryPolicy(attempt_max=None).allows(10**6)


@pytest.mark.parametrize("wrong", [{"attempt_max": 0}, {"factor": 0.5}, {"jitter": 2}, {"first_delay_s": -1}])
def test_an_impossible_policy_is_refused(wrong: dict[str, Any]) -> None:
    """A policy that would retry never, or ever faster, cannot be made."""
    with pytest.raises(ValueError, match=r"1 or more|0 or more"):
        RetryPolicy(**wrong)


def test_a_tool_s_own_words_carry_their_reason() -> None:
    """`RetryAfter` knows its delay and says it when no reason is given; `NonRetryable` is a plain failure."""
    assert str(RetryAfter(2.5)) == "asked to come back in 2.5 s"
    assert RetryAfter(2.5, "busy").delay_s == 2.5
    assert str(NonRetryable("no such order")) == "no such order"


def test_literal_types_list_their_values() -> None:
    """A closed list of words is an enum in the schema."""

    @tool(effect=Effect.KEYED)
    async def mail(template: Literal["sorry", "thanks"]) -> None:
        return None

    assert isinstance(mail, Tool)
    assert mail.parameters["properties"]["template"] == {"type": "string", "enum": ["sorry", "thanks"]}


def test_an_alias_finds_its_tool_and_no_other() -> None:
    """The agent answers to names that a tool had before; two tools for one name are refused."""

    @tool(effect=Effect.PURE, aliases=("old", "older"))
    async def new() -> None:
        return None

    @tool(effect=Effect.PURE)
    async def old() -> None:
        return None

    agent = ChatAgent(name="chat", tools=[new])
    assert [agent.tool(name) for name in ("new", "old", "older", "oldest")] == [new, new, new, None]
    assert [each["function"]["name"] for each in agent.definitions] == ["new"]
    with pytest.raises(AgentRefused, match="two tools that answer to 'old'"):
        ChatAgent(name="chat", tools=[new, old])


@pytest.mark.parametrize("aliases", ["old", ("no name",), ("",)])
def test_an_alias_that_no_tool_can_have_had_is_refused(aliases: Any) -> None:
    """Where the tool is defined."""
    with pytest.raises(ToolRefused, match="alias"):

        @tool(effect=Effect.PURE, aliases=aliases)
        async def new() -> None:
            return None
