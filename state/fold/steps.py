"""Steps: the outcome of every model call and tool call of an execution, derived from its entries alone. Pure.

An attempt that ended has an entry that says so. An attempt that a dead worker left has none; it is inferred when its
step was ready in one turn and another turn followed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from threadmark.state.entries import entry as entries
from threadmark.state.entries.entry import Failure, Outcome, Recorded, SeenView
from threadmark.state.entries.ids import ExecutionId, StepKey, model_step
from threadmark.state.entries.lineage import Leave, Lineage, lineage_of, visible
from threadmark.state.entries.message import Usage
from threadmark.state.fold.fold import apply
from threadmark.state.fold.thread_state import Call, Execution, ThreadState

__all__ = ["Attempt", "Step", "StepStatus", "Steps", "lineage_seeing", "steps_of"]

StepStatus = Literal["recorded", "in_flight", "in_doubt", "waiting", "failed", "cancelled", "refused"]
#: Maps the name of a tool to its effect; None for a tool that the agent does not have.
EffectOf = Callable[[str], str | None]

_STATUS_OF: dict[Outcome, StepStatus] = {
    "ok": "recorded",
    "error": "failed",
    "cancelled": "cancelled",
    "unknown": "cancelled",
    "refused": "refused",
}
_INTENDED = ("keyed", "once")
#: Failures of calls that were never made.
_NOT_CALLED = ("BadArguments", "UnknownTool")
#: Reasons for which a run ends before its next step begins.
_NOT_BEGUN = ("steps", "tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt at a step. `outcome` is `interrupted` if its turn broke off, and None while unknown."""

    attempt: int
    worker_id: str
    fence: int
    started_at_us: int
    ended_at_us: int | None = None
    outcome: Literal["ok", "error", "cancelled", "interrupted"] | None = None
    failure: Failure | None = None


@dataclass(slots=True, kw_only=True)
class Step:
    """One step. `outcome`, `seq` and `finished_at_us` are those of its result."""

    key: StepKey
    kind: Literal["model", "tool", "recall"]
    name: str
    effect: str | None
    call_id: str | None = None
    status: StepStatus = "in_flight"
    attempts: dict[int, Attempt] = field(default_factory=dict)
    outcome: Outcome | None = None
    failure: Failure | None = None
    usage: Usage | None = None
    view: SeenView | None = None  #: the view of a compacted thread that a model call was sent
    wait_id: str | None = None
    wait_kind: str | None = None
    resolved_by: str | None = None
    retry_at_us: int = 0
    seq: int | None = None
    finished_at_us: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether it has no result yet."""
        return self.finished_at_us is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The steps of an execution in order of appearance, and its tokens."""

    steps: Sequence[Step]
    tokens_paid: int
    tokens_saved: int  #: tokens that turns after the first would have paid again without the journal


def lineage_seeing(entries: Sequence[Recorded], leaves: Mapping[int, Leave], present: Lineage, run: int) -> Lineage:
    """A lineage that includes the whole run: the current one, or that of the branch which the run is on."""
    own = [each for each in entries if each.run == run]
    seen = {each.seq for each in visible(own, present)}
    return present if len(seen) == len(own) else lineage_of(leaves, own[-1].branch)


def steps_of(recorded: Iterable[Recorded], execution_id: ExecutionId, effect_of: EffectOf, now_us: int) -> Steps:
    """The steps of an execution, derived from the entries of one lineage in order."""
    state, book = ThreadState(), _Book(effect_of)
    tokens_paid = tokens_saved = 0
    for each in recorded:
        is_begun = _is_at(state, execution_id)
        apply(state, each)
        if not _is_at(state, execution_id) or state.execution is None:
            if is_begun:
                break
            continue
        book.enter(each, state, state.execution)
        tokens_paid = state.execution.tokens_in + state.execution.tokens_out
        tokens_saved = state.execution.tokens_saved
    return Steps(steps=book.closed(now_us), tokens_paid=tokens_paid, tokens_saved=tokens_saved)


def _is_at(state: ThreadState, execution_id: ExecutionId) -> bool:
    return state.execution is not None and state.execution.execution_id == execution_id


class _Book:
    """Collects steps, entry by entry."""

    def __init__(self, effect_of: EffectOf) -> None:
        self._effect_of = effect_of
        self._steps: dict[StepKey, Step] = {}
        self._turn: tuple[str, int] | None = None  # worker and fence
        self._is_settled = False

    def enter(  # noqa: PLR0912 - one arm for each kind
        self, at: Recorded, state: ThreadState, execution: Execution
    ) -> None:
        """Process one entry; `state` is the thread's state after it."""
        entry = at.entry
        match entry:
            case entries.RunStarted():
                self._turn, self._is_settled = None, False
                self._note_calls(state)  # a fork may begin with calls that its execution took over
            case entries.TurnStarted():
                self._break_off()
                self._turn = (entry.worker_id, at.fence)
            case entries.ModelReplied():
                self._model_replied(at, entry)
                self._note_calls(state)
            case entries.Recalled():
                self._recalled(at, entry, execution)
            case entries.StepIntended():
                self._steps[entry.step_key].effect = entry.effect
            case entries.StepFailed():
                self._failed(at, entry)
            case entries.ToolReturned():
                self._tool_returned(at, entry)
            case entries.WaitOpened():
                self._asked(entry)
            case entries.WaitAnswered() | entries.WaitSuperseded():
                self._steps[entry.step_key].wait_kind = None
            case entries.RunSettled():
                self._is_settled = True
                if entry.paused_at is not None or entry.reason in _NOT_BEGUN:
                    self._take_back()
            case entries.StateUpdated():
                self._overwritten(at, state)
            case _:
                pass
        self._begin(at, state, execution)

    def closed(self, now_us: int) -> Sequence[Step]:
        """The steps, with a status for those without a result."""
        for step in self._steps.values():
            if step.is_open:
                step.status = self._open_status(step, now_us)
        return list(self._steps.values())

    def _open_status(self, step: Step, now_us: int) -> StepStatus:
        if step.wait_kind is not None:
            return "in_doubt" if step.wait_kind == "in_doubt" else "waiting"
        if self._is_settled:
            return "cancelled" if step.kind == "model" else "waiting"
        return "waiting" if step.retry_at_us > now_us else "in_flight"

    def _begin(self, at: Recorded, state: ThreadState, execution: Execution) -> None:
        """Record the attempts that the turn can make from here on."""
        if self._turn is None or self._is_settled:
            return
        if state.next == "model" and not execution.model_failed and execution.model_retry_at_us <= at.at_us:
            key = model_step(execution.model_count + 1)
            step = self._steps.setdefault(key, Step(key=key, kind="model", name="", effect="idempotent"))
            self._attempt(step, execution.model_attempt, at)
        for call in state.open_calls:
            step = self._steps[call.step_key]
            if _can_begin(call, step, at.at_us):
                self._attempt(step, call.attempt(execution.turn_count), at)

    def _attempt(self, step: Step, attempt: int, at: Recorded) -> Attempt:
        worker_id, fence = self._turn or ("", at.fence)
        begun = Attempt(attempt=attempt, worker_id=worker_id, fence=fence, started_at_us=at.at_us)
        return step.attempts.setdefault(attempt, begun)

    def _end(
        self, step: Step, attempt: int, at: Recorded, outcome: Literal["ok", "error", "cancelled"], duration_us: int
    ) -> None:
        begun = self._attempt(step, attempt, at)
        started_at_us = at.at_us - duration_us if duration_us else begun.started_at_us
        step.attempts[attempt] = replace(begun, started_at_us=started_at_us, ended_at_us=at.at_us, outcome=outcome)

    def _break_off(self) -> None:
        for step in self._steps.values():
            for attempt, each in step.attempts.items():
                if each.outcome is None:
                    step.attempts[attempt] = replace(each, outcome="interrupted")

    def _take_back(self) -> None:
        """The run ended before the ready steps had begun."""
        for step in list(self._steps.values()):
            step.attempts = {key: each for key, each in step.attempts.items() if each.outcome is not None}
            if step.kind == "model" and step.is_open and not step.attempts:
                del self._steps[step.key]

    def _model_replied(self, at: Recorded, entry: entries.ModelReplied) -> None:
        key = entry.step_key
        step = self._steps.setdefault(key, Step(key=key, kind="model", name="", effect="idempotent"))
        is_whole = entry.finish_reason != "cancelled"
        self._end(step, entry.attempt, at, "ok" if is_whole else "cancelled", entry.duration_us)
        step.name, step.usage, step.outcome = entry.model, entry.usage, "ok" if is_whole else "cancelled"
        step.view = entry.view
        step.status = _STATUS_OF[step.outcome]
        step.seq, step.finished_at_us = at.seq, at.at_us

    def _recalled(self, at: Recorded, entry: entries.Recalled, execution: Execution) -> None:
        step = Step(key=entry.step_key, kind="recall", name="memory", effect="pure")
        # A recall has no opening entry: the attempts counted so far for the model call after it belong to the recall.
        ahead = self._steps.pop(model_step(execution.model_count + 1), None)
        step.attempts = {} if ahead is None else ahead.attempts
        self._steps[entry.step_key] = step
        is_told = entry.status == "ok"
        self._end(step, entry.attempt, at, "ok" if is_told else "error", entry.duration_us)
        step.outcome, step.failure = "ok" if is_told else "error", entry.failure
        step.status = _STATUS_OF[step.outcome]
        step.seq, step.finished_at_us = at.seq, at.at_us

    def _note_calls(self, state: ThreadState) -> None:
        for key, call in state.calls.items():
            name = call.call.name
            step = Step(key=key, kind="tool", name=name, effect=self._effect_of(name), call_id=call.call.id)
            self._steps.setdefault(key, step)

    def _failed(self, at: Recorded, entry: entries.StepFailed) -> None:
        step = self._steps.get(entry.step_key)
        if step is None:
            step = Step(key=entry.step_key, kind="model", name="", effect="idempotent")
            self._steps[entry.step_key] = step
        self._end(step, entry.attempt, at, "error", 0)
        step.attempts[entry.attempt] = replace(step.attempts[entry.attempt], failure=entry.failure)
        step.failure, step.retry_at_us = entry.failure, entry.retry_at_us
        if entry.final:
            step.status, step.outcome, step.seq, step.finished_at_us = "failed", "error", at.seq, at.at_us

    def _tool_returned(self, at: Recorded, entry: entries.ToolReturned) -> None:
        step = self._steps[entry.step_key]
        if entry.failure is not None and entry.failure.error in _NOT_CALLED:
            step.attempts = {key: each for key, each in step.attempts.items() if each.outcome is not None}
        elif entry.outcome in ("ok", "error") and entry.resolved_by is None:
            self._end(step, entry.attempt, at, "ok" if entry.outcome == "ok" else "error", entry.duration_us)
        step.attempts = {key: replace(each, outcome=each.outcome or "cancelled") for key, each in step.attempts.items()}
        step.status, step.outcome, step.failure = _STATUS_OF[entry.outcome], entry.outcome, entry.failure
        step.resolved_by, step.wait_kind = entry.resolved_by, None
        step.seq, step.finished_at_us = at.seq, at.at_us

    def _asked(self, entry: entries.WaitOpened) -> None:
        step = self._steps[entry.step_key]
        step.wait_id, step.wait_kind = entry.wait_id, entry.kind
        if entry.kind == "approval":
            step.attempts = {key: each for key, each in step.attempts.items() if each.outcome is not None}

    def _overwritten(self, at: Recorded, state: ThreadState) -> None:
        """Messages from outside answered calls, removed them, or added new ones."""
        for step in self._steps.values():
            if step.kind == "tool" and step.is_open and step.key not in state.calls:
                step.status, step.outcome, step.wait_kind = "cancelled", "cancelled", None
                step.seq, step.finished_at_us = at.seq, at.at_us
        self._note_calls(state)


def _can_begin(call: Call, step: Step, at_us: int) -> bool:
    if call.wait_open or call.invalid is not None or call.retry_at_us > at_us or step.effect is None:
        return False
    return step.effect not in _INTENDED or call.intent_count > 0
