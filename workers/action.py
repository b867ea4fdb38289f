"""What a chat agent does next: a pure function of the folded journal, the agent and the clock.

It looks at nothing else, so a run goes on after a crash or a deploy exactly where its journal ends.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Literal

from state import (
    Call,
    CancelAction,
    Entry,
    Execution,
    Failure,
    Outcome,
    ParkReason,
    Run,
    RunStatus,
    StepIntended,
    StepKey,
    ThreadState,
    ThreadStatus,
    ToolReturned,
    WaitOpened,
    WaitSuperseded,
    idempotency_key_of,
    model_step,
    wait_id_of,
)
from workers.agents import ChatAgent
from workers.tools import BadArguments, Effect, Tool

__all__ = [
    "Action",
    "CallModel",
    "Note",
    "Park",
    "Perform",
    "RollBack",
    "Settle",
    "ask",
    "close_calls",
    "next_action",
    "returned",
]

_INTENDED = (Effect.KEYED, Effect.ONCE)


@dataclass(frozen=True, slots=True)
class Note:
    """Record these; there is nothing to perform for them."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class CallModel:
    """Ask the model."""

    step_key: StepKey
    ordinal: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Perform:
    """Perform these tool calls, all at once."""

    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Park:
    """Let the thread go; the run stays pending until `due_at_us`, or until somebody settles the doubt."""

    reason: ParkReason
    due_at_us: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settle:
    """End the run."""

    status: RunStatus
    thread_status: ThreadStatus = ThreadStatus.IDLE
    reason: str | None = None
    failure: Failure | None = None
    paused_at: Literal["model", "tools"] | None = None


@dataclass(frozen=True, slots=True)
class RollBack:
    """Move the head back to before the run."""


Action = Note | CallModel | Perform | Park | Settle | RollBack


def next_action(state: ThreadState, agent: ChatAgent, run: Run, *, fence: int, now_us: int) -> Action:
    """The next action of the run that holds the thread under `fence`."""
    execution = state.execution
    if execution is None:
        raise ValueError("a run has to be started before it can act")
    if run.cancel is CancelAction.ROLLBACK:
        return RollBack()
    ending = _cancelled(run) or _over_budget(state, agent, run, execution, now_us)
    if ending is not None:
        entries = close_calls(state, execution, "the run was stopped before this call was made")
        return Note(entries) if entries else ending
    if state.next is None:
        return Settle(status=RunStatus.SUCCESS)
    pause = _pause(state, run, execution)
    if pause is not None:
        return pause
    if state.next == "model":
        return _model(agent, execution, now_us)
    return _tools(state, agent, execution, fence, now_us)


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


def _cancelled(run: Run) -> Settle | None:
    if run.cancel is None:
        return None
    return Settle(status=RunStatus.INTERRUPTED, reason="cancelled")


def _over_budget(state: ThreadState, agent: ChatAgent, run: Run, execution: Execution, now_us: int) -> Settle | None:
    if state.next is None:
        return None
    limits = agent.limits
    if now_us - execution.run_started_at_us >= limits.wall_time_s_max * 1_000_000:
        message = f"The run used its wall time of {limits.wall_time_s_max:g} s."
        return Settle(
            status=RunStatus.TIMEOUT,
            thread_status=ThreadStatus.ERROR,
            reason="wall_time",
            failure=Failure("BudgetExceeded", message),
        )
    step_count_max = limits.step_count_max
    if run.request.step_count_max is not None:
        step_count_max = min(step_count_max, run.request.step_count_max)
    if execution.step_count >= step_count_max:
        return _broke("steps", f"The run used its {step_count_max} steps.")
    if execution.tokens_in + execution.tokens_out >= limits.token_count_max:
        return _broke("tokens", f"The run used its {limits.token_count_max} tokens.")
    return None


def _broke(reason: str, message: str) -> Settle:
    return Settle(
        status=RunStatus.ERROR,
        thread_status=ThreadStatus.ERROR,
        reason=reason,
        failure=Failure("BudgetExceeded", message),
    )


def _pause(state: ThreadState, run: Run, execution: Execution) -> Settle | None:
    """Stop where the caller asked to, once: the run that goes on from there passes."""
    node = state.next
    if node is None or execution.pause_taken or _batch_begun(state):
        return None
    before, after = run.request.interrupt_before, run.request.interrupt_after
    position = state.position
    finished = None
    if position is not None and position.source == "loop" and position.run == run.number:
        finished = "model" if state.last_type == "ai" else "tools"
    if node in before or "*" in before or (finished and (finished in after or "*" in after)):
        return Settle(
            status=RunStatus.SUCCESS,
            thread_status=ThreadStatus.INTERRUPTED,
            reason=f"paused before {node}",
            paused_at=node,
        )
    return None


def _batch_begun(state: ThreadState) -> bool:
    return any(
        call.outcome or call.intent_count or call.wait_count or call.failure_count for call in state.calls.values()
    )


def _model(agent: ChatAgent, execution: Execution, now_us: int) -> Action:
    if execution.model_failed or execution.model_failure_count >= agent.limits.model_attempt_max:
        return Settle(
            status=RunStatus.ERROR,
            thread_status=ThreadStatus.ERROR,
            reason="model",
            failure=execution.model_last_failure,
        )
    if execution.model_failure_count and execution.model_retry_at_us > now_us:
        return Park(ParkReason.BACKOFF, execution.model_retry_at_us)
    ordinal = execution.model_count + 1
    return CallModel(model_step(ordinal), ordinal, execution.model_attempt)


def _tools(state: ThreadState, agent: ChatAgent, execution: Execution, fence: int, now_us: int) -> Action:
    notes = [
        entry
        for call in state.open_calls
        for entry in (_prepare(call, agent.tool(call.call.name), execution, fence),)
        if entry is not None
    ]
    if notes:
        return Note(tuple(notes))
    idle = [call for call in state.open_calls if not call.wait_open]
    ready = tuple(call for call in idle if call.retry_at_us <= now_us)
    if ready:
        return Perform(ready)
    if any(call.wait_kind == "in_doubt" for call in state.open_waits):
        return Park(ParkReason.IN_DOUBT)
    if idle:
        return Park(ParkReason.BACKOFF, min(call.retry_at_us for call in idle))
    return Settle(status=RunStatus.SUCCESS, thread_status=ThreadStatus.INTERRUPTED, reason="waiting for a person")


def _prepare(call: Call, tool: Tool | None, execution: Execution, fence: int) -> Entry | None:
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
