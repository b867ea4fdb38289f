"""Waits: questions to people, as they are shown."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from threadmark.app.wire.conversations.interrupt_schema import APPROVAL_SCHEMA
from threadmark.state import Wait

__all__ = ["ShownWait", "wait_to_wire"]


class ShownWait(Struct):
    """A question. `shown_digest` is SHA-256 of the canonical JSON of `{"arguments", "tool"}` that was put to people.

    `kind` is `approval` (answered by `POST /waits/{wait_id}/answer`, as `answer_schema` says) or `in_doubt` (settled by
    `POST /runs/{run_id}/steps/{step_key}/resolve`); `status` is `open`, `answered` or `superseded`. `outdated`
    of an open one says why its call does not fit the agent any more; `effect` is that of the tool when it was asked.
    """

    wait_id: str
    thread_id: str
    run_id: str | None
    execution_id: str
    step_key: str
    kind: str
    tool: str
    arguments: dict[str, Any]
    shown_digest: str
    status: str
    opened_at: datetime
    answer: Any
    answered_by: str | None
    answered_at: datetime | None
    answer_schema: dict[str, Any] | None
    effect: str | None
    outdated: str | None


def wait_to_wire(wait: Wait, run_names: Mapping[int, str], outdated: Mapping[str, str]) -> ShownWait:
    """The wait; `run_names` are ids of runs by their numbers, `outdated` why calls do not fit, by wait id."""
    return ShownWait(
        wait_id=wait.wait_id,
        thread_id=wait.thread_id,
        run_id=run_names.get(wait.run),
        execution_id=wait.execution_id,
        step_key=wait.step_key,
        kind=wait.kind,
        tool=wait.tool,
        arguments=wait.arguments,
        shown_digest=wait.shown_digest,
        status=wait.status,
        opened_at=wait.opened_at,
        answer=wait.answer,
        answered_by=wait.answered_by,
        answered_at=wait.answered_at,
        answer_schema=APPROVAL_SCHEMA if wait.kind == "approval" else None,
        effect=wait.effect,
        outdated=outdated.get(wait.wait_id),
    )
