"""The fold: from entries to the state of a thread. Pure; no other module interprets entries.

A chat agent's graph has two nodes. `model` is next after input and after the last tool result; `tools` is next while a
reply has calls without results; nothing is next when a reply makes no calls. A position (a checkpoint in the SDK's
terms) exists after the input and after each finished node.
"""

from collections.abc import Iterable
from typing import Literal

import msgspec

from threadmark.state.entries import entry as entries
from threadmark.state.entries.entry import Recorded
from threadmark.state.entries.ids import StepKey, tool_step
from threadmark.state.entries.transcript import result_message, unanswered_calls
from threadmark.state.fold.thread_state import Call, Execution, Position, Said, ThreadState

__all__ = ["apply", "fold"]


def fold(recorded: Iterable[Recorded], state: ThreadState | None = None) -> ThreadState:
    """The state after the entries (of one lineage, in order), from `state` or from nothing."""
    state = state or ThreadState()
    for each in recorded:
        apply(state, each)
    return state


def apply(state: ThreadState, at: Recorded) -> None:  # noqa: PLR0912 - one arm for each kind
    """Move the state past one entry."""
    state.seq = at.seq
    entry = at.entry
    match entry:
        case entries.RunStarted():
            _run_started(state, at, entry)
        case entries.TurnStarted():
            _turn_started(state, entry)
        case entries.ModelReplied():
            _model_replied(state, at, entry)
        case entries.Recalled():
            _recalled(state, entry)
        case entries.StepIntended():
            call = state.calls[entry.step_key]
            call.effect, call.intended_fence = entry.effect, at.fence
            call.intent_count, call.resolution = call.intent_count + 1, None
        case entries.StepFailed():
            _step_failed(state, entry)
        case entries.ToolReturned():
            _tool_returned(state, at, entry)
        case entries.WaitOpened():
            call = state.calls[entry.step_key]
            call.wait_id, call.wait_kind, call.wait_open = entry.wait_id, entry.kind, True
            call.wait_count += 1
            if entry.kind == "approval":
                call.asked_effect = entry.effect
        case entries.WaitAnswered():
            _wait_answered(state.calls[entry.step_key], entry)
        case entries.WaitSuperseded():
            state.calls[entry.step_key].wait_open = False
        case entries.RunSettled():
            _run_settled(state, entry)
        case entries.StateUpdated():
            _state_updated(state, at, entry)
        case entries.RolledBack():
            # The thread is back where it was before the run, so what the run started no longer concerns it.
            if state.execution is not None:
                state.execution.settled = True
            for call in state.open_waits:
                # Its question was closed by the run that is undone; the next run asks again.
                call.wait_open = False
        case entries.ViewChanged():
            state.view_id = entry.view_id
        case _:
            raise AssertionError(f"the fold does not know {type(entry).__name__}")


def _run_started(state: ThreadState, at: Recorded, entry: entries.RunStarted) -> None:
    same = state.execution is not None and state.execution.execution_id == entry.execution_id
    if same and state.execution is not None:
        execution = state.execution
        execution.run, execution.run_id = at.run, entry.run_id
        execution.run_started_at_us, execution.attempt, execution.settled = at.at_us, 0, False
        execution.step_count, execution.tokens_before = 0, execution.tokens_in + execution.tokens_out
        execution.pause_taken, execution.ready_turn = True, execution.turn_count + 1
        execution.model_failed, execution.model_failure_count, execution.model_attempt_count = False, 0, 0
        for call in state.open_calls:
            call.ready_turn = execution.turn_count + 1
    else:
        _take_over_calls(state)
        state.execution = Execution(
            execution_id=entry.execution_id,
            run=at.run,
            run_id=entry.run_id,
            assistant=entry.assistant,
            run_started_at_us=at.at_us,
        )
    state.failure = None
    if entry.messages:
        state.merge(entry.messages, Said(at.seq, entry.run_id, at.at_us))
        state.next = "model"
        state.calls = {}
        _mark(state, at, "input")
    elif entry.source == "fork":
        _mark(state, at, "fork")


def _take_over_calls(state: ThreadState) -> None:
    """A new execution repeats, under keys of its own, the calls of an older one that have no result."""
    calls = list(state.calls.values())
    for index, each in enumerate(calls):
        if each.outcome is None:
            # No reply uses the ordinal 0. With its old key, the call would share a step with a call of the new
            # execution's first reply: one idempotency key for two effects.
            calls[index] = Call(step_key=tool_step(0, index), call=each.call, invalid=each.invalid, ready_turn=1)
    state.calls = {each.step_key: each for each in calls}


def _turn_started(state: ThreadState, entry: entries.TurnStarted) -> None:
    execution = state.execution
    if execution is None:
        return
    execution.turn_count += 1
    execution.attempt = entry.attempt
    # In the first turn of an execution there are no tokens yet.
    execution.tokens_saved += execution.tokens_in + execution.tokens_out


def _model_replied(state: ThreadState, at: Recorded, entry: entries.ModelReplied) -> None:
    execution = state.execution
    message = entry.message
    state.merge((message,), _said(state, at))
    ordinal = 1
    if execution is not None:
        execution.model_count += 1
        execution.step_count += 1
        execution.tokens_in += entry.usage.input_tokens
        execution.tokens_out += entry.usage.output_tokens
        execution.model_failure_count = execution.model_attempt_count = 0
        execution.pause_taken, execution.ready_turn = False, execution.turn_count
        ordinal = execution.model_count
    state.calls = {}
    for index, call in enumerate(message.tool_calls):
        key = tool_step(ordinal, index)
        state.calls[key] = Call(
            step_key=key,
            call=call,
            invalid=entry.invalid_calls.get(call.id),
            ready_turn=execution.turn_count if execution else 0,
        )
    state.next = "tools" if state.calls else None
    _mark(state, at, "loop")


def _recalled(state: ThreadState, entry: entries.Recalled) -> None:
    state.recalled = entry
    if state.execution is not None:
        state.execution.recall_count += 1
        state.execution.ready_turn = state.execution.turn_count


def _step_failed(state: ThreadState, entry: entries.StepFailed) -> None:
    execution = state.execution
    turn = execution.turn_count + 1 if execution else 0
    call = state.calls.get(entry.step_key)
    if call is not None:
        call.failure_count, call.attempt_count, call.ready_turn = call.failure_count + 1, entry.attempt, turn
        call.retry_at_us, call.last_failure = entry.retry_at_us, entry.failure
        if call.effect == "once":
            # The tool reported that nothing happened, so nothing is in doubt; the next attempt records its own intent.
            call.intended_fence = None
    elif execution is not None:
        execution.model_failure_count, execution.ready_turn = execution.model_failure_count + 1, turn
        execution.model_attempt_count, execution.model_retry_at_us = entry.attempt, entry.retry_at_us
        execution.model_failed, execution.model_last_failure = entry.final, entry.failure


def _wait_answered(call: Call, entry: entries.WaitAnswered) -> None:
    call.wait_open, call.answered_by = False, entry.answered_by
    if call.wait_kind == "approval":
        call.approval = entry.value
    else:
        call.resolution = entry.value


def _tool_returned(state: ThreadState, at: Recorded, entry: entries.ToolReturned) -> None:
    call = state.calls[entry.step_key]
    call.outcome, call.result, call.wait_open = entry.outcome, result_message(entry), False
    call.result_said = _said(state, at)
    if state.execution is not None:
        state.execution.step_count += 1
        state.execution.pause_taken, state.execution.ready_turn = False, state.execution.turn_count
    if state.open_calls:
        return
    # In the order of the calls, not of the results, so that every replay yields the same transcript.
    for each in state.calls.values():
        if each.result is not None and each.result_said is not None:
            state.merge((each.result,), each.result_said)
    state.calls = {}
    state.next = "model"
    _mark(state, at, "loop")


def _run_settled(state: ThreadState, entry: entries.RunSettled) -> None:
    state.failure = entry.failure
    if state.execution is not None:
        state.execution.settled = True
        state.execution.paused_at = entry.paused_at


def _state_updated(state: ThreadState, at: Recorded, entry: entries.StateUpdated) -> None:
    for message_id in entry.removed:
        state.remove(message_id)
    state.merge(entry.messages, Said(at.seq, None, at.at_us))
    state.update_count += 1
    known = {each.call.id: each for each in state.calls.values()}
    state.calls = {}
    for index, call in enumerate(unanswered_calls(state.messages)):
        # A call written from outside gets its own key: no model call has the ordinal 0. The key uses a count and not
        # the seq, because a copy of the thread has other seqs and needs the same keys.
        new = Call(step_key=StepKey(f"{tool_step(0, index)}-{state.update_count}"), call=call)
        held = known.get(call.id, new)
        # An approval or an attempt belongs to the call as it was: with changed arguments it is another call.
        kept = held if msgspec.json.encode(held.call) == msgspec.json.encode(call) else new
        state.calls[kept.step_key] = kept
    last = state.last_type or "ai"
    if state.open_calls:
        state.next = "tools"
    elif last == "ai" or entry.as_node == "model":
        state.next = None
    else:
        state.next = "model"
    _mark(state, at, "update")


def _said(state: ThreadState, at: Recorded) -> Said:
    return Said(at.seq, None if state.execution is None else state.execution.run_id, at.at_us)


def _mark(state: ThreadState, at: Recorded, source: Literal["input", "loop", "update", "fork"]) -> None:
    state.position = Position(
        seq=at.seq,
        branch=at.branch,
        at_us=at.at_us,
        parent=state.position,
        source=source,
        step=-1 if state.position is None else state.position.step + 1,
        next=state.next,
        run=at.run,
    )
