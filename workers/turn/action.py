"""What a chat agent does next: a pure function of the folded journal, the agent and the clock.

It looks at nothing else, so a run goes on after a crash or a deploy exactly where its journal ends.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from threadmark.state import (
    Call,
    CancelAction,
    Entry,
    Execution,
    Failure,
    ParkReason,
    Run,
    RunOutcome,
    RunStatus,
    StepKey,
    ThreadState,
    ThreadStatus,
    model_step,
    recall_step,
)
from threadmark.workers.agents.agent import ChatAgent
from threadmark.workers.turn.calls import close_calls, prepare

__all__ = [
    "ORPHAN_COUNT_MAX",
    "Action",
    "CallModel",
    "Note",
    "Park",
    "Perform",
    "Recall",
    "RollBack",
    "Settle",
    "next_action",
]


#: Code points of a question to memory; it takes no longer ones.
QUESTION_LENGTH_MAX = 8_192
#: Turns, one after the other without progress, in which its worker may die or which may break off.
ORPHAN_COUNT_MAX = 5


@dataclass(frozen=True, slots=True)
class Note:
    """Record these; there is nothing to perform for them."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Recall:
    """Ask memory what it knows about what a person said."""

    step_key: StepKey
    message_id: str
    question: str
    attempt: int


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
    """Let the thread go; the run stays pending."""

    outcome: RunOutcome


@dataclass(frozen=True, slots=True)
class Settle:
    """End the run."""

    outcome: RunOutcome
    paused_at: Literal["model", "tools"] | None = None


@dataclass(frozen=True, slots=True)
class RollBack:
    """Move the head back to before the run."""


Action = Note | Recall | CallModel | Perform | Park | Settle | RollBack


def next_action(
    state: ThreadState, agent: ChatAgent, run: Run, *, fence: int, now_us: int, begun: Collection[StepKey] = ()
) -> Action:
    """The next action of the run that holds the thread under `fence`; `begun` are the calls that this turn began."""
    execution = state.execution
    if execution is None:
        raise ValueError("a run has to be started before it can act")
    if run.cancel is CancelAction.ROLLBACK:
        return RollBack()
    if (ending := _must_end(state, agent, run, execution, now_us)) is not None:
        entries = close_calls(state, execution, "the run was stopped", agent, begun)
        return Note(entries) if entries else ending
    if state.next is None:
        return Settle(RunOutcome(status=RunStatus.SUCCESS))
    pause = _pause(state, run, execution)
    if pause is not None:
        return pause
    if state.next == "model":
        return _recall(state, agent, execution) or _model(agent, execution, now_us)
    return _tools(state, agent, execution, fence, now_us)


def _must_end(state: ThreadState, agent: ChatAgent, run: Run, execution: Execution, now_us: int) -> Settle | None:
    """Why the run may not go on: it was cancelled, it kills its workers, or a budget is used up."""
    if run.cancel is not None:
        return Settle(RunOutcome(status=RunStatus.INTERRUPTED, reason="cancelled"))
    if run.orphaned > ORPHAN_COUNT_MAX:
        # A run without input on its thread goes on where this one stopped, once its operator knows why.
        message = f"{run.orphaned} turns in a row of this run got no further: its worker died, or the turn broke off."
        if run.failure is not None:
            message += f" What broke the last one was {run.failure.error}: {run.failure.message}"
        return _fail("quarantined", Failure("Quarantined", message))
    return _over_budget(state, agent, run, execution, now_us)


def _over_budget(state: ThreadState, agent: ChatAgent, run: Run, execution: Execution, now_us: int) -> Settle | None:
    if state.next is None:
        return None
    limits = agent.limits
    if now_us - execution.run_started_at_us >= limits.wall_time_s_max * 1_000_000:
        message = f"The run used its wall time of {limits.wall_time_s_max:g} s."
        return _fail("wall_time", Failure("BudgetExceeded", message), RunStatus.TIMEOUT)
    step_count_max = limits.step_count_max
    if run.request.step_count_max is not None:
        step_count_max = min(step_count_max, run.request.step_count_max)
    if execution.step_count >= step_count_max:
        return _fail("steps", Failure("BudgetExceeded", f"The run used its {step_count_max} steps."))
    if execution.token_count >= limits.token_count_max:
        return _fail("tokens", Failure("BudgetExceeded", f"The run used its {limits.token_count_max} tokens."))
    return None


def _fail(reason: str, failure: Failure | None, status: RunStatus = RunStatus.ERROR) -> Settle:
    return Settle(RunOutcome(status=status, thread_status=ThreadStatus.ERROR, reason=reason, failure=failure))


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
            RunOutcome(
                status=RunStatus.SUCCESS,
                thread_status=ThreadStatus.INTERRUPTED,
                reason=f"paused before {node}",
            ),
            paused_at=node,
        )
    return None


def _batch_begun(state: ThreadState) -> bool:
    return any(
        call.outcome or call.intent_count or call.wait_count or call.failure_count for call in state.calls.values()
    )


def _recall(state: ThreadState, agent: ChatAgent, execution: Execution) -> Recall | None:
    """The question for a person's last message, which is put once: what was answered is in the journal."""
    last = state.last_human
    if agent.memory is None or not agent.memory.recall or last is None or state.recalled_now is not None:
        return None
    # The end of a long message is where its question stands.
    question = last.text.strip()[-QUESTION_LENGTH_MAX:]
    if not question:
        return None
    return Recall(recall_step(execution.recall_count + 1), last.id, question, execution.model_attempt)


def _model(agent: ChatAgent, execution: Execution, now_us: int) -> Action:
    if execution.model_failed or execution.model_failure_count >= agent.limits.model_attempt_max:
        return _fail("model", execution.model_last_failure)
    if execution.model_failure_count and execution.model_retry_at_us > now_us:
        return Park(RunOutcome.of_park(ParkReason.BACKOFF, execution.model_retry_at_us))
    ordinal = execution.model_count + 1
    return CallModel(model_step(ordinal), ordinal, execution.model_attempt)


def _tools(state: ThreadState, agent: ChatAgent, execution: Execution, fence: int, now_us: int) -> Action:
    # Not those that wait for their next attempt: an intent that is left lying there would be in doubt.
    due = [call for call in state.open_calls if call.retry_at_us <= now_us]
    prepared = [prepare(call, agent.tool(call.call.name), execution, fence) for call in due]
    notes = [entry for entry in prepared if entry is not None]
    if notes:
        return Note(tuple(notes))
    idle = [call for call in state.open_calls if not call.wait_open]
    ready = tuple(call for call in idle if call.retry_at_us <= now_us)
    if ready:
        return Perform(ready)
    if idle:
        return Park(RunOutcome.of_park(ParkReason.BACKOFF, min(call.retry_at_us for call in idle)))
    if any(call.wait_kind == "in_doubt" for call in state.open_waits):
        return Park(RunOutcome.of_park(ParkReason.IN_DOUBT))
    return Settle(
        RunOutcome(status=RunStatus.SUCCESS, thread_status=ThreadStatus.INTERRUPTED, reason="waiting for a person")
    )
