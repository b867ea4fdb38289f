"""Runs of the dialect: how they are shown."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from state import Run
from workers.agents import assistant_id_of

__all__ = ["RUN_FIELDS", "ShownFailure", "ShownRun", "chosen", "run_path", "run_to_wire"]


class ShownFailure(Struct):
    """Why a run failed."""

    error: str
    message: str


class ShownRun(Struct):
    """A run.

    `reason` says why it ended as it did; `parked` what a pending one waits for: `in_doubt` (a person settles it) or
    `backoff` (time). `attempts` counts its turns. `execution_id` is shared by the runs that carry one piece of work on.
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
    attempts: int
    execution_id: str


#: The fields of a run, which a listing can be cut down to.
RUN_FIELDS = ShownRun.__struct_fields__


def run_to_wire(run: Run) -> ShownRun:
    """The run as clients of the dialect see it."""
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
        attempts=run.attempts,
        execution_id=run.execution_id,
    )


def chosen(run: ShownRun, fields: Sequence[str]) -> dict[str, Any]:
    """The run as plain JSON, with the chosen fields alone; with all where none is chosen."""
    plain: dict[str, Any] = msgspec.to_builtins(run)
    return {name: plain[name] for name in fields} if fields else plain


def run_path(run: Run) -> str:
    """Where the run is found."""
    return f"/threads/{run.thread_id}/runs/{run.run_id}"
