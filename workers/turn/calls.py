"""What a tool call needs before it may be performed, and the entries that end it without a performance. Pure."""

import hashlib
import json
from collections.abc import Collection
from typing import Any, Literal

from threadmark.state import (
    Call,
    Entry,
    Execution,
    Failure,
    Outcome,
    StepIntended,
    StepKey,
    ThreadState,
    ToolReturned,
    WaitOpened,
    WaitSuperseded,
    idempotency_key_of,
    wait_id_of,
)
from threadmark.workers.agents.agent import ChatAgent
from threadmark.workers.agents.call_fit import approves
from threadmark.workers.agents.tools import BadArguments, Effect, Tool

__all__ = ["FAILURE_BYTES_MAX", "ask", "bounded_failure", "close_calls", "prepare", "returned"]

#: Longest sentence of a failure, in UTF-8, the mark of the cut included.
FAILURE_BYTES_MAX = 4096
_CUT = "… (cut)".encode()
_INTENDED = (Effect.KEYED, Effect.ONCE)


def prepare(call: Call, tool: Tool | None, execution: Execution, fence: int) -> Entry | None:
    """What has to be recorded before the call may be performed; None when nothing is missing."""
    if call.wait_open:
        return None
    was_begun = _was_begun(call, tool, fence)
    # Before all else: whatever a deploy made of the tool meanwhile, what the old one did is not known.
    if was_begun and (settled := _settle_doubt(call, execution)) is not None:
        return settled
    # Before the tool is looked at: a person may close a call whose tool is gone.
    if (before := _closed(call, execution) or _not_yet(call, tool, execution)) is not None:
        return before
    if tool is not None and tool.effect in _INTENDED and (call.intended_fence is None or was_begun):
        return _intend(call, execution, tool)
    return None


def _not_yet(call: Call, tool: Tool | None, execution: Execution) -> Entry | None:
    """The question, or the error, that stands before the call; None where it may be made."""
    failure = _unusable(call, tool)
    if failure is not None and not (_approved(call) and _can_ask_again(call)):
        return returned(call, execution, "error", failure=failure)
    # An approval that was given before a deploy made the call impossible is not used up: a person is asked again.
    return ask(call, execution, "approval", tool) if failure is not None or _must_ask(call, tool) else None


def _closed(call: Call, execution: Execution) -> ToolReturned | None:
    """What a person's answer ends the call with: a result, or a refusal; None where it lets the call be made."""
    answer = call.approval
    if isinstance(answer, dict) and "result" in answer:
        return returned(call, execution, "ok", value=answer["result"], resolved_by=call.answered_by)
    return None if answer is None or _approved(call) else _refused(call, execution)


def _can_ask_again(call: Call) -> bool:
    """Whether the approval was not used yet, so that a deploy since then must not use it up."""
    return call.failure_count == 0 and (call.intended_fence is None or call.resolution is not None)


def _must_ask(call: Call, tool: Tool | None) -> bool:
    if tool is None:
        return False
    if call.approval is None:
        return tool.needs_approval
    named = call.approval.get("effect") if isinstance(call.approval, dict) else None
    return (named or call.asked_effect) not in (None, tool.effect) and _can_ask_again(call)


def _was_begun(call: Call, tool: Tool | None, fence: int) -> bool:
    """Whether a `once` call was intended in an earlier turn, or its doubt was settled since."""
    effects = (call.effect, None if tool is None else tool.effect)
    stale = call.intended_fence != fence or call.resolution is not None
    return call.intended_fence is not None and stale and Effect.ONCE in effects


def _settle_doubt(call: Call, execution: Execution) -> Entry | None:
    """The result that a person gave to the call, or the question; None when it did not happen."""
    if not isinstance(call.resolution, dict):
        return ask(call, execution, "in_doubt")
    return _happened(call, execution)


def _happened(call: Call, execution: Execution) -> ToolReturned | None:
    resolution = call.resolution
    if isinstance(resolution, dict) and resolution.get("outcome") == "happened":
        return returned(call, execution, "ok", value=resolution.get("result"), resolved_by=call.answered_by)
    return None


def _intend(call: Call, execution: Execution, tool: Tool) -> StepIntended:
    return StepIntended(
        step_key=call.step_key,
        effect=tool.effect,
        idempotency_key=idempotency_key_of(execution.execution_id, call.step_key),
    )


def ask(
    call: Call, execution: Execution, kind: Literal["approval", "in_doubt"], tool: Tool | None = None
) -> WaitOpened:
    """The question whether the call may be made by the tool, or what became of it."""
    shown = {"tool": call.call.name, "arguments": call.call.arguments}
    document = json.dumps(shown, sort_keys=True, separators=(",", ":"))
    return WaitOpened(
        wait_id=wait_id_of(execution.execution_id, call.step_key, f"{kind}-{call.wait_count}"),
        step_key=call.step_key,
        kind=kind,
        tool=call.call.name,
        arguments=call.call.arguments,
        shown_digest=hashlib.sha256(document.encode()).hexdigest(),
        effect=call.asked_effect if tool is None else str(tool.effect),
    )


def _unusable(call: Call, tool: Tool | None) -> Failure | None:
    """Why the call cannot be made at all; the model reads it, and may call again."""
    if tool is None:
        return bounded_failure("UnknownTool", f"There is no tool {call.call.name!r}.")
    if call.invalid is not None:
        return bounded_failure("BadArguments", call.invalid)
    try:
        tool.arguments(call.call.arguments)
    except BadArguments as error:
        return bounded_failure("BadArguments", str(error))
    return None


def _approved(call: Call) -> bool:
    return approves(call.approval)


def _refused(call: Call, execution: Execution) -> ToolReturned:
    reason = call.approval.get("reason") if isinstance(call.approval, dict) else None
    message = f"A person refused this call: {reason}" if reason else "A person refused this call."
    return returned(call, execution, "refused", failure=Failure("Refused", message), resolved_by=call.answered_by)


def close_calls(
    state: ThreadState, execution: Execution, why: str, agent: ChatAgent, begun: Collection[StepKey] = ()
) -> tuple[Entry, ...]:
    """A result for every call that has none, so that the next model call is valid.

    `begun` are the calls that this turn has begun; no entry tells of those without an intent.
    """
    entries: list[Entry] = []
    for call in state.open_calls:
        if call.wait_open and call.wait_id:
            entries.append(WaitSuperseded(wait_id=call.wait_id, step_key=call.step_key))
        entries.append(_happened(call, execution) or _unfinished(call, execution, why, agent, begun))
    return tuple(entries)


def _unfinished(
    call: Call, execution: Execution, why: str, agent: ChatAgent, begun: Collection[StepKey]
) -> ToolReturned:
    tool = agent.tool(call.call.name)
    if call.intended_fence is not None:
        may_have_happened = call.resolution is None
    else:
        # An effect that needs no intent leaves no trace before its result.
        may_have_happened = _has_no_intent(call, tool) and _may_have_begun(call, tool, execution, begun)
    outcome: Outcome = "unknown" if may_have_happened else "cancelled"
    if may_have_happened:
        message = "The call was interrupted; whether it took effect is unknown."
    elif call.intent_count or call.failure_count or _may_have_begun(call, tool, execution, begun):
        message = f"Not called again: {why}."
    else:
        message = f"Not called: {why}."
    return returned(call, execution, outcome, failure=Failure("Cancelled", message))


def _has_no_intent(call: Call, tool: Tool | None) -> bool:
    """Whether the call may do something outside although no intent was recorded."""
    return call.effect not in _INTENDED and (tool is None or tool.effect is Effect.IDEMPOTENT)


def _may_have_begun(call: Call, tool: Tool | None, execution: Execution, begun: Collection[StepKey]) -> bool:
    """Whether the call may have been made: in this turn, or in one that broke off."""
    if call.failure_count or call.intent_count or call.step_key in begun:
        return True
    was_left = call.ready_turn < execution.turn_count
    if call.invalid is not None or (tool is not None and tool.effect in _INTENDED):
        return False
    return was_left and not (tool is not None and tool.needs_approval and call.approval is None)


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


def bounded_failure(error: str, message: str) -> Failure:
    """The failure, its sentence cut at a code point and marked as cut where it is longer than is kept."""
    # As many code points as could be kept: a sentence of many megabytes is not encoded whole.
    head = message[: FAILURE_BYTES_MAX + 1]
    # A path that is no text has lone surrogates in it.
    raw = head.encode(errors="backslashreplace")
    if len(raw) > FAILURE_BYTES_MAX or len(head) < len(message):
        raw = raw[: FAILURE_BYTES_MAX - len(_CUT)].decode(errors="ignore").encode() + _CUT
    return Failure(error, raw.decode())
