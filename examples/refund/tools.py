"""The tools of the refund story. Each reaches the outside world and takes `delay_ms` milliseconds to come back."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from threadmark import DID_NOT_HAPPEN, JSON, Effect, ToolContext, Verdict, tool
from threadmark.examples.refund.effects import happened, reach_outside

__all__ = ["check_policy", "confirm", "email_customer", "lookup_order", "refund"]

ORDER_TOTAL_CENTS = 12_900
REFUND_CENTS_MAX = 50_000
_TIMEOUT_S = 120.0

OrderId = Annotated[str, Field(min_length=1, max_length=64)]
Cents = Annotated[int, Field(ge=1, le=100_000_000)]
DelayMs = Annotated[int, Field(ge=0, le=100_000, description="how long the call takes, for demonstrations")]


@tool(effect=Effect.PURE, timeout_s=_TIMEOUT_S)
async def lookup_order(order_id: OrderId, context: ToolContext, delay_ms: DelayMs = 0) -> dict[str, JSON]:
    """Look up an order: its status and what was paid."""
    await reach_outside("lookup_order", {"order_id": order_id}, delay_ms, context)
    return {"order_id": order_id, "status": "delivered", "total_cents": ORDER_TOTAL_CENTS}


@tool(effect=Effect.PURE, timeout_s=_TIMEOUT_S)
async def check_policy(
    order_id: OrderId, amount_cents: Cents, context: ToolContext, delay_ms: DelayMs = 0
) -> dict[str, JSON]:
    """Check whether the policy allows a refund of this amount."""
    await reach_outside("check_policy", {"order_id": order_id, "amount_cents": amount_cents}, delay_ms, context)
    return {"order_id": order_id, "amount_cents": amount_cents, "allowed": amount_cents <= REFUND_CENTS_MAX}


@tool(effect=Effect.KEYED, timeout_s=_TIMEOUT_S)
async def email_customer(
    order_id: OrderId,
    template: Annotated[str, Field(min_length=1, max_length=64)],
    context: ToolContext,
    delay_ms: DelayMs = 0,
) -> dict[str, JSON]:
    """Send the customer an email made from a template."""
    await reach_outside("email_customer", {"order_id": order_id, "template": template}, delay_ms, context)
    return {"order_id": order_id, "template": template, "sent": True}


async def verify_refund(
    arguments: Mapping[str, Any], context: ToolContext
) -> dict[str, JSON] | Literal[Verdict.DID_NOT_HAPPEN]:
    """Ask the outside world whether the refund with this idempotency key was paid."""
    if await happened("refund", context):
        return _paid(arguments["order_id"], arguments["amount_cents"])
    return DID_NOT_HAPPEN


@tool(effect=Effect.ONCE, needs_approval=True, timeout_s=_TIMEOUT_S, verify=verify_refund)
async def refund(
    order_id: OrderId, amount_cents: Cents, context: ToolContext, delay_ms: DelayMs = 0
) -> dict[str, JSON]:
    """Pay money back to the customer. A person approves it first."""
    await reach_outside("refund", {"order_id": order_id, "amount_cents": amount_cents}, delay_ms, context)
    return _paid(order_id, amount_cents)


@tool(effect=Effect.KEYED, timeout_s=_TIMEOUT_S)
async def confirm(order_id: OrderId, context: ToolContext, delay_ms: DelayMs = 0) -> dict[str, JSON]:
    """Confirm to the shop that the order is settled."""
    await reach_outside("confirm", {"order_id": order_id}, delay_ms, context)
    return {"order_id": order_id, "confirmed": True}


def _paid(order_id: str, amount_cents: int) -> dict[str, JSON]:
    return {"order_id": order_id, "amount_cents": amount_cents, "refunded": True}
