"""What a tool call needs before it may be performed, and the entries that end it without a performance. Pure."""

import hashlib
import json
from typing import Any, Literal

from state import (
    Call,
    Entry,
    Execution,
    Failure,
    Outcome,
    StepIntended,
    ThreadState,
    ToolReturned,
    WaitOpened,
    WaitSuperseded,
    idempotency_key_of,
    wait_id_of,
)
from workers.tools import BadArguments, Effect, Tool

__all__ = ["ask", "close_calls", "prepare", "returned"]

_INTENDED = (Effect.KEYED, Effect.ONCE)


def prepare(call: Call, tool: Tool | None, execution: Execution, fence: int) -> Entry | None:
    """What has to be recorded before the call may be performed; None when nothing is missing."""
    if call.wait_open:
        return None
    failure = _unusable(call, tool)
    if tool is None or failure is not None:
        return returned(call, execution, "error", failure=failure)
    if tool.needs_approval and not _approved(call):
        if call.approval is not None:
            return returned(
                call,
                execution,
                "refused",
                failure=Failure("Refused", _refusal(call)),
                resolved_by=call.answered_by,
            )
        return ask(call, execution, "approval")
    return _intent(call, tool, execution, fence)


def _intent(call: Call, tool: Tool, execution: Execution, fence: int) -> Entry | None:
    """The intent that has to be on disk first; for a `once` step that was left half done, what becomes of it."""
    if tool.effect not in _INTENDED:
        return None
    if call.intended_fence is None:
        return _intend(call, execution, tool)
    stale = call.intended_fence != fence or call.resolution is not None
    return _settle_doubt(call, execution, tool) if tool.effect is Effect.ONCE and stale else None


def _settle_doubt(call: Call, execution: Execution, tool: Tool) -> Entry:
    resolution = call.resolution
    if not isinstance(resolution, dict):
        return ask(call, execution, "in_doubt")
    if resolution.get("outcome") == "happened":
        return returned(call, execution, "ok", value=resolution.get("result"), resolved_by=call.answered_by)
    return _intend(call, execution, tool)


def _intend(call: Call, execution: Execution, tool: Tool) -> StepIntended:
    return StepIntended(
        step_key=call.step_key,
        effect=tool.effect,
        idempotency_key=idempotency_key_of(execution.execution_id, call.step_key),
    )


def ask(call: Call, execution: Execution, kind: Literal["approval", "in_doubt"]) -> WaitOpened:
    """The question whether the call may be made, or what became of it."""
    shown = {"tool": call.call.name, "arguments": call.call.arguments}
    document = json.dumps(shown, sort_keys=True, separators=(",", ":"))
    return WaitOpened(
        wait_id=wait_id_of(execution.execution_id, call.step_key, f"{kind}-{call.wait_count}"),
        step_key=call.step_key,
        kind=kind,
        tool=call.call.name,
        arguments=call.call.arguments,
        shown_digest=hashlib.sha256(document.encode()).hexdigest(),
    )


def _unusable(call: Call, tool: Tool | None) -> Failure | None:
    """Why the call cannot be made at all; the model is told, and may ask again."""
    if tool is None:
        return Failure("UnknownTool", f"There is no tool {call.call.name!r}.")
    if call.invalid is not None:
        return Failure("BadArguments", call.invalid)
    try:
        tool.arguments(call.call.arguments)
    except BadArguments as error:
        return Failure("BadArguments", str(error))
    return None


def _approved(call: Call) -> bool:
    answer = call.approval
    return answer is True or (isinstance(answer, dict) and answer.get("approve") is True)


def _refusal(call: Call) -> str:
    reason = call.approval.get("reason") if isinstance(call.approval, dict) else None
    return f"A person refused this call: {reason}" if reason else "A person refused this call."


def close_calls(state: ThreadState, execution: Execution, why: str) -> tuple[Entry, ...]:
    """A result for every call that has none, so that the next model call is valid."""
    entries: list[Entry] = []
    for call in state.open_calls:
        if call.wait_open and call.wait_id:
            entries.append(WaitSuperseded(wait_id=call.wait_id, step_key=call.step_key))
        begun = call.intent_count > 0
        message = "The call was interrupted; whether it took effect is unknown." if begun else f"Not called: {why}."
        outcome: Outcome = "unknown" if begun else "cancelled"
        entries.append(returned(call, execution, outcome, failure=Failure("Cancelled", message)))
    return tuple(entries)


def returned(
    call: Call,
    execution: Execution,
    outcome: Outcome,
    *,
    value: Any = None,
    failure: Failure | None = None,
    resolved_by: str | None = None,
    duration_us: int = 0,
) -> ToolReturned:
    """The result entry of a call."""
    return ToolReturned(
        step_key=call.step_key,
        call_id=call.call.id,
        tool=call.call.name,
        outcome=outcome,
        message_id=f"msg-{execution.execution_id}-{call.step_key}",
        value=value,
        failure=failure,
        attempt=call.attempt(execution.turn_count),
        resolved_by=resolved_by,
        duration_us=duration_us,
    )
