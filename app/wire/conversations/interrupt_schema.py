"""Interrupts of the dialect: how a question to a person is shown, and which answers it takes."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from threadmark.app.http.body_errors import BodyRefused
from threadmark.app.wire.typed_json import read_as
from threadmark.state import Call, Wait, spell

__all__ = ["APPROVAL_SCHEMA", "interrupt_of_call", "interrupt_of_wait", "read_approval"]

#: Characters of the reason for a refusal.
REASON_CHARS_MAX = 10_000

#: JSON schema of what answers an approval.
APPROVAL_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "boolean", "description": "true makes the call, false refuses it."},
        {
            "type": "object",
            "properties": {
                "approve": {"type": "boolean"},
                "reason": {"type": "string", "maxLength": REASON_CHARS_MAX, "description": "The model reads it."},
                "effect": {
                    "enum": ["pure", "idempotent", "keyed", "once"],
                    "description": "The effect that is approved, where it changed since the question was asked.",
                },
            },
            "required": ["approve"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"result": {"description": "The call is not made; this is its result."}},
            "required": ["result"],
            "additionalProperties": False,
        },
    ]
}


class _Approval(Struct, forbid_unknown_fields=True):
    approve: bool
    reason: Annotated[str, Meta(max_length=REASON_CHARS_MAX)] | None = None
    effect: Literal["pure", "idempotent", "keyed", "once"] | None = None


class _Result(Struct, forbid_unknown_fields=True):
    result: Any


def interrupt_of_wait(wait: Wait) -> dict[str, Any]:
    """The interrupt of an open wait."""
    return _interrupt(wait.wait_id, wait.kind, wait.tool, wait.arguments, wait.step_key)


def interrupt_of_call(call: Call) -> dict[str, Any]:
    """The interrupt of a call with an open wait."""
    if call.wait_id is None or call.wait_kind is None:
        raise ValueError(f"step {call.step_key} has no open question")
    return _interrupt(call.wait_id, call.wait_kind, call.call.name, call.call.arguments, call.step_key)


def read_approval(value: Any, path: str) -> bool | dict[str, Any]:
    """The answer to an approval: `true`, `false`, `{"approve": …, "reason"?: …}` or `{"result": …}`.

    A result is spelled (see `threadmark.state.entries.value`). Raises BodyRefused.
    """
    if isinstance(value, bool):
        return value
    if not isinstance(value, dict):
        raise BodyRefused(
            path, 'an approval is answered with true, false, {"approve": true or false, "reason": …} or {"result": …}'
        )
    if "result" in value and "approve" not in value:
        read_as(_Result, value, path)
        return {"result": spell(value["result"], f"{path}.result")}
    read_as(_Approval, value, path)
    return value


def _interrupt(wait_id: str, kind: str, tool: str, arguments: dict[str, Any], step_key: str) -> dict[str, Any]:
    shown = {"kind": kind, "tool": tool, "arguments": arguments, "step_key": step_key}
    # A step in doubt is settled by its own route; a resume does not answer it.
    return {"id": wait_id, "value": shown, "response_schema": APPROVAL_SCHEMA if kind == "approval" else None}
