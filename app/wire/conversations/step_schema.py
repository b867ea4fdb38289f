"""Steps of an execution, as they are shown, and how one in doubt is settled."""

from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from threadmark.app.http.body_errors import BodyRefused
from threadmark.state import Attempt, ExecutionId, Failure, SeenView, Step, Usage, from_us, idempotency_key_of, spell

__all__ = ["Resolution", "ShownAttempt", "ShownStep", "StepTokens", "StepTotals", "resolution_of", "step_to_wire"]


class ShownAttempt(Struct):
    """One try. `outcome` is null while it runs, `interrupted` where its worker died or let go."""

    attempt: int
    worker_id: str
    fence: int
    started_at: datetime
    ended_at: datetime | None
    outcome: str | None
    failure: Failure | None


class StepTokens(Struct):
    """Tokens of a model call."""

    input_tokens: int
    output_tokens: int
    total_tokens: int


class ShownStep(Struct):
    """One model call, tool call or recall. `fence` is that of its last attempt, `seq` where its result is recorded.

    `status`: `recorded` (it has its result and never runs again), `in_flight`, `waiting` (for a person, for its next
    attempt, or for a run to go on), `in_doubt` (whether it happened is unknown), `failed`, `refused` (by a person),
    `cancelled`; `outcome` of a cancelled one is `unknown` if it may have taken effect. `view` is what a model
    call was shown of a compacted thread, null for the whole of it.
    """

    key: str
    kind: Literal["model", "tool", "recall"]
    name: str
    effect: str | None
    status: str
    outcome: str | None
    attempt_count: int
    attempts: list[ShownAttempt]
    worker_ids: list[str]
    fence: int | None
    idempotency_key: str
    call_id: str | None
    wait_id: str | None
    resolved_by: str | None
    failure: Failure | None
    retry_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    tokens: StepTokens | None
    view: SeenView | None
    seq: int | None


class StepTotals(Struct):
    """Over the whole execution. `tokens_saved_by_replay`: what later turns would have paid again without a journal."""

    step_count: int
    attempt_count: int
    tokens_paid: int
    tokens_saved_by_replay: int


class Resolution(Struct, forbid_unknown_fields=True):
    """What became of a step in doubt: it `happened` (with its `result`), it `did_not_happen`, or `verify` is to ask.

    `wait_id` names the doubt that is meant; it is required where the step was in doubt before.
    """

    outcome: Literal["happened", "did_not_happen", "verify"]
    result: Any | UnsetType = UNSET
    wait_id: str | None = None


def step_to_wire(step: Step, execution_id: ExecutionId, model: str) -> ShownStep:
    """The step; its idempotency key is the one that its tool, or the model's server, is handed.

    `model` names the model of a call that has no reply yet.
    """
    attempts = [_attempt(each) for _, each in sorted(step.attempts.items())]
    return ShownStep(
        key=step.key,
        kind=step.kind,
        name=step.name or model,
        effect=step.effect,
        status=step.status,
        outcome=step.outcome,
        attempt_count=max(step.attempts, default=0),
        attempts=attempts,
        worker_ids=[each.worker_id for each in attempts],
        fence=attempts[-1].fence if attempts else None,
        idempotency_key=idempotency_key_of(execution_id, step.key),
        call_id=step.call_id,
        wait_id=step.wait_id,
        resolved_by=step.resolved_by,
        failure=step.failure,
        retry_at=from_us(step.retry_at_us) if step.is_open and step.retry_at_us else None,
        started_at=attempts[0].started_at if attempts else None,
        finished_at=None if step.finished_at_us is None else from_us(step.finished_at_us),
        tokens=None if step.usage is None else _tokens(step.usage),
        view=step.view,
        seq=step.seq,
    )


def resolution_of(data: Resolution) -> dict[str, Any] | None:
    """What settles the step, as the journal keeps it; None where its verifier is to be asked. Raises BodyRefused."""
    given = data.result is not UNSET
    match data.outcome:
        case "happened":
            if not given:
                raise BodyRefused("$.result", "is required: a step that happened has a result, which may be null")
            return {"outcome": "happened", "result": spell(data.result, "$.result")}
        case "did_not_happen" | "verify":
            if given:
                raise BodyRefused("$.result", f"does not go with {data.outcome}")
            return {"outcome": "did_not_happen"} if data.outcome == "did_not_happen" else None


def _attempt(attempt: Attempt) -> ShownAttempt:
    return ShownAttempt(
        attempt=attempt.attempt,
        worker_id=attempt.worker_id,
        fence=attempt.fence,
        started_at=from_us(attempt.started_at_us),
        ended_at=None if attempt.ended_at_us is None else from_us(attempt.ended_at_us),
        outcome=attempt.outcome,
        failure=attempt.failure,
    )


def _tokens(usage: Usage) -> StepTokens:
    return StepTokens(**msgspec.structs.asdict(usage), total_tokens=usage.input_tokens + usage.output_tokens)
