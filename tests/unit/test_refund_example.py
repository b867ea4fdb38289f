"""The refund story's tools, and the file that stands for the outside world."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from threadmark.examples.refund.effects import EFFECTS_FILE
from threadmark.examples.registry import registry
from threadmark.workers.agents.agent import ChatAgent, assistant_id_of
from threadmark.workers.agents.tool_context import ToolContext
from threadmark.workers.agents.tools import DID_NOT_HAPPEN, BadArguments, Effect, Tool


@pytest.fixture
def agent() -> ChatAgent:
    found = registry.find("refund")
    assert found is not None
    return found


def a_context(data_dir: Path, key: str = "k1", attempt: int = 1, events: list[Any] | None = None) -> ToolContext:
    return ToolContext(
        thread_id="t",
        run_id="r",
        step_key="s",
        idempotency_key=key,
        attempt=attempt,
        data_dir=data_dir,
        emit=(events if events is not None else []).append,
        now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
    )


def a_tool(agent: ChatAgent, name: str) -> Tool:
    found = agent.tool(name)
    assert found is not None
    return found


def effects(data_dir: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (data_dir / EFFECTS_FILE).read_text().splitlines()]


def test_the_registry_offers_both_examples(agent: ChatAgent) -> None:
    """A fresh server has `chat` and `refund`; the refund agent has the five tools with their effects."""
    assert [each.name for each in registry] == ["chat", "refund", "memo"]
    assert registry.find(assistant_id_of("refund")) is agent
    assert {each.name: (each.effect, each.needs_approval) for each in agent.tools} == {
        "lookup_order": (Effect.PURE, False),
        "check_policy": (Effect.PURE, False),
        "email_customer": (Effect.KEYED, False),
        "refund": (Effect.ONCE, True),
        "confirm": (Effect.KEYED, False),
    }


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("lookup_order", {"order_id": "A1"}, {"order_id": "A1", "status": "delivered", "total_cents": 12_900}),
        (
            "check_policy",
            {"order_id": "A1", "amount_cents": 50_001},
            {"order_id": "A1", "amount_cents": 50_001, "allowed": False},
        ),
        (
            "email_customer",
            {"order_id": "A1", "template": "sorry"},
            {"order_id": "A1", "template": "sorry", "sent": True},
        ),
        (
            "refund",
            {"order_id": "A1", "amount_cents": 4200},
            {"order_id": "A1", "amount_cents": 4200, "refunded": True},
        ),
        ("confirm", {"order_id": "A1"}, {"order_id": "A1", "confirmed": True}),
    ],
)
async def test_each_call_leaves_one_line_outside(
    agent: ChatAgent, name: str, arguments: dict[str, Any], result: dict[str, Any], tmp_path: Path
) -> None:
    """Reads too: the line has the tool, its arguments, the idempotency key and the attempt."""
    tool, events = a_tool(agent, name), list[Any]()

    returned = await tool.perform(tool.arguments(arguments), a_context(tmp_path, attempt=2, events=events))

    assert returned == result
    assert effects(tmp_path) == [
        {"tool": name, "arguments": {**arguments, "delay_ms": 0}, "idempotency_key": "k1", "attempt": 2}
    ]
    assert events == [{"effect": name, "attempt": 2}]


async def test_the_line_is_there_before_the_delay(agent: ChatAgent, tmp_path: Path) -> None:
    """A process that is killed while a call takes its time has reached the outside world."""
    tool, written = a_tool(agent, "confirm"), asyncio.Event()
    context = a_context(tmp_path)
    context = ToolContext(
        **{each: getattr(context, each) for each in context.__slots__} | {"emit": lambda _: written.set()}
    )

    call = asyncio.create_task(tool.perform(tool.arguments({"order_id": "A1", "delay_ms": 60_000}), context))
    await written.wait()

    assert [each["arguments"] for each in effects(tmp_path)] == [{"order_id": "A1", "delay_ms": 60_000}]
    assert not call.done()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_calls_at_the_same_time_do_not_mix_their_lines(agent: ChatAgent, tmp_path: Path) -> None:
    """Each line is written whole."""
    tool = a_tool(agent, "email_customer")
    arguments = tool.arguments({"order_id": "é" * 64, "template": "t" * 64})

    await asyncio.gather(*(tool.perform(arguments, a_context(tmp_path, key=f"k{each}")) for each in range(40)))

    assert sorted(each["idempotency_key"] for each in effects(tmp_path)) == sorted(f"k{each}" for each in range(40))


async def test_the_verifier_asks_the_outside_world(agent: ChatAgent, tmp_path: Path) -> None:
    """Happened, with the result that was lost, or did not happen; another tool's line with the key does not count."""
    refund, confirm = a_tool(agent, "refund"), a_tool(agent, "confirm")
    arguments = refund.arguments({"order_id": "A1", "amount_cents": 4200})
    assert refund.verify is not None

    before = await refund.verify(arguments, a_context(tmp_path))
    await confirm.perform(confirm.arguments({"order_id": "A1"}), a_context(tmp_path))
    still = await refund.verify(arguments, a_context(tmp_path))
    lost = await refund.perform(arguments, a_context(tmp_path))
    after = await refund.verify(arguments, a_context(tmp_path))
    other = await refund.verify(arguments, a_context(tmp_path, key="k2"))

    assert (before, still, after, other) == (DID_NOT_HAPPEN, DID_NOT_HAPPEN, lost, DID_NOT_HAPPEN)


def test_amounts_are_whole_cents(agent: ChatAgent) -> None:
    """No text, no fraction, nothing below one cent is taken for an amount."""
    for amount in ("4200", 42.5, 0, -1, True):
        with pytest.raises(BadArguments, match="`amount_cents` is"):
            a_tool(agent, "refund").arguments({"order_id": "A1", "amount_cents": amount})


async def test_the_chat_agent_adds(tmp_path: Path) -> None:
    """Its one tool changes nothing and leaves no line."""
    chat = registry.find("chat")
    assert chat is not None
    add = a_tool(chat, "add")

    assert await add.perform(add.arguments({"a": 2, "b": 3}), a_context(tmp_path)) == 5
    assert not (tmp_path / EFFECTS_FILE).exists()
