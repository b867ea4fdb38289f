"""Runs of the dialect: how they are shown."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec import Struct

from threadmark.state import SETTLED, ParkReason, Run
from threadmark.workers.agents.agent import assistant_id_of

__all__ = ["RUN_FIELDS", "ShownFailure", "ShownRun", "Waiting", "chosen", "run_path", "run_to_wire"]


class ShownFailure(Struct):
    """Why a run failed; of one that has not ended, what broke its last turn."""

    error: str
    message: str


class Waiting(Struct):
    """What an unfinished run is missing: `no_worker`, a live worker that can run the `route` (agent, agent@version)."""

    reason: Literal["no_worker"]
    route: str


class ShownRun(Struct):
    """A run.

    `reason` says why it ended as it did; `parked` what a pending one waits for: `in_doubt` (a person settles it),
    `backoff` or `broken` (time, after an attempt that failed or a turn that broke off) or `quarantined` (an operator,
    after turns that broke off again and again). `waiting_for` is set while no live worker can run it. `attempts` counts
    its turns. `execution_id` is shared by the runs that carry one piece of work on.
    """

    run_id: str
    thread_id: str
    assistant_id: str
    created_at: datetime
    updated_at: datetime
    status: str
    metadata: dict[str, Any]
    kwargs: dict[str, Any]
    multitask_strategy: str
    reason: str | None
    error: ShownFailure | None
    parked: str | None
    waiting_for: Waiting | None
    attempts: int
    execution_id: str


#: The fields of a run, which a listing can be cut down to.
RUN_FIELDS = ShownRun.__struct_fields__


def run_to_wire(run: Run, served: Collection[str]) -> ShownRun:
    """The run as clients of the dialect see it; `served` are the routes of the live workers."""
    failure, assistant_id = run.failure, assistant_id_of(run.assistant)
    return ShownRun(
        run_id=run.run_id,
        thread_id=run.thread_id,
        assistant_id=assistant_id,
        created_at=run.created_at,
        updated_at=run.updated_at,
        status=run.status,
        metadata={**run.metadata, "graph_id": run.assistant, "assistant_id": assistant_id},
        kwargs=run.request.kwargs,
        multitask_strategy=run.multitask,
        reason=run.reason,
        error=None if failure is None else ShownFailure(failure.error, failure.message),
        parked=run.parked,
        waiting_for=_waiting_for(run, served),
        attempts=run.attempts,
        execution_id=run.execution_id,
    )


def _waiting_for(run: Run, served: Collection[str]) -> Waiting | None:
    needs_worker = run.status not in SETTLED and run.parked not in (ParkReason.IN_DOUBT, ParkReason.QUARANTINED)
    return Waiting("no_worker", run.route) if needs_worker and run.route not in served else None


def chosen(run: ShownRun, fields: Sequence[str]) -> dict[str, Any]:
    """The run as plain JSON, with the chosen fields alone; with all where none is chosen."""
    plain: dict[str, Any] = msgspec.to_builtins(run)
    return {name: plain[name] for name in fields} if fields else plain


def run_path(run: Run) -> str:
    """Where the run is found."""
    return f"/threads/{run.thread_id}/runs/{run.run_id}"
