"""Helpers for tests of steps: the steps of a story, and entries that end or hold up one of them."""

from typing import Any

import msgspec

from tests.support.factories import EXECUTION, NOW_US, Story, replied
from threadmark.state import (
    Entry,
    ExecutionId,
    Failure,
    RunId,
    RunSettled,
    StepFailed,
    StepIntended,
    StepKey,
    WaitAnswered,
    WaitOpened,
)
from threadmark.state.fold.steps import Step, Steps, steps_of

__all__ = [
    "ANSWER",
    "FAILURE",
    "INTENT",
    "LATER_US",
    "MODEL",
    "TOOL",
    "failed",
    "last",
    "outcomes",
    "question",
    "returned_model",
    "settled",
    "steps_in",
]

MODEL, TOOL = StepKey("model-1"), StepKey("tool-1-0")
FAILURE = Failure("Broken", "it broke")
LATER_US = NOW_US + 10**9


def steps_in(story: Story, *, effect: str | None = "pure", now_us: int | None = None, of: str = EXECUTION) -> Steps:
    """The steps of an execution whose tools all have this effect."""
    now = story.now_us if now_us is None else now_us
    return steps_of(story.entries, ExecutionId(of), lambda _: effect, now)


def last(story: Story, **changes: Any) -> Step:
    """The step that came up last."""
    return steps_in(story, **changes).steps[-1]


def outcomes(step: Step) -> list[tuple[int, str | None]]:
    """The attempts of a step: number and outcome."""
    return [(number, each.outcome) for number, each in step.attempts.items()]


def failed(key: StepKey, *, attempt: int = 1, retry_at_us: int = 0, final: bool = False) -> StepFailed:
    """The entry of an attempt that failed."""
    return StepFailed(step_key=key, attempt=attempt, failure=FAILURE, retry_at_us=retry_at_us, final=final)


def question(kind: Any, wait_id: str = "wait-1") -> WaitOpened:
    """The entry of a question about the first call."""
    return WaitOpened(wait_id=wait_id, step_key=TOOL, kind=kind, tool="look", arguments={}, shown_digest="d")


ANSWER = WaitAnswered(wait_id="wait-1", step_key=TOOL, value=True, answered_by="anna", answered_at_us=NOW_US)
INTENT = StepIntended(step_key=TOOL, effect="once", idempotency_key="k")


def returned_model(**changes: Any) -> Entry:
    """A reply with other fields."""
    return msgspec.structs.replace(replied(), **changes)


def settled(status: str = "interrupted", **changes: Any) -> RunSettled:
    """The entry of a run's end."""
    return RunSettled(run_id=RunId("run-1"), status=status, **changes)
