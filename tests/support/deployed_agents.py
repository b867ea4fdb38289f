"""An agent whose tools a deploy changes: `DEPLOYED` says which version of it a server has."""

import asyncio
import json
import os
from collections.abc import Mapping
from typing import Any

from threadmark.workers.agents.agent import ChatAgent, Registry
from threadmark.workers.agents.tool_context import JSON, ToolContext
from threadmark.workers.agents.tools import Effect, Tool, tool

__all__ = ["registry"]

DEPLOYED = os.environ.get("DEPLOYED", "first")


def _paid(context: ToolContext, **paid: JSON) -> dict[str, JSON]:
    with (context.data_dir / "paid.jsonl").open("a") as file:
        file.write(json.dumps(paid) + "\n")
    return {"paid": True}


async def _seen(arguments: Mapping[str, Any], context: ToolContext) -> Any:
    return {"seen": dict(arguments)}


async def pay(account: str, cents: int, context: ToolContext) -> dict[str, JSON]:
    """Pay."""
    return _paid(context, account=account, cents=cents)


async def pay_by_iban(iban: str, cents: int, context: ToolContext) -> dict[str, JSON]:
    """Pay, by other arguments."""
    return _paid(context, account=iban, cents=cents)


@tool(effect=Effect.ONCE, timeout_s=600, verify=_seen)
async def wire(account: str, context: ToolContext) -> dict[str, JSON]:
    """Pay, and take longer than its server lives."""
    _paid(context, account=account)
    await asyncio.sleep(600)
    return {}


@tool(effect=Effect.ONCE, name="wire", verify=_seen)
async def wire_by_iban(iban: str, day: int) -> None:
    """Pay, by other arguments."""


def _tools() -> list[Tool]:
    match DEPLOYED:
        case "renamed":
            return [tool(effect="keyed", needs_approval=True, name="pay_out")(pay)]
        case "aliased":
            return [tool(effect="keyed", needs_approval=True, name="pay_out", aliases=("pay",))(pay), wire]
        case "changed":
            return [tool(effect="keyed", needs_approval=True, name="pay")(pay_by_iban), wire_by_iban]
        case "effect":
            return [tool(effect="once", needs_approval=True)(pay), wire]
        case _:
            return [tool(effect="keyed", needs_approval=True)(pay), wire]


registry = Registry([ChatAgent(name="other" if DEPLOYED == "none" else "clerk", tools=_tools())])
