"""Runs: read, list, cancel, delete; and the answers that create new ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import Connection, Select, select, update

from threadmark.state import statements, tables
from threadmark.state.entries.run_status import SETTLED, CancelAction, ParkReason, RunStatus, ThreadStatus
from threadmark.state.errors import AlreadyAnswered, Conflict, NotFound, NothingToCancel, NotInDoubt
from threadmark.state.records import Run, RunRequest, Wait, run_of, wait_of
from threadmark.state.runs.acceptance import Acceptance, RunSubmission, insert_run
from threadmark.state.runs.cancellation import cancel_active
from threadmark.state.threads import receipts

__all__ = [
    "Answer",
    "answer_wait",
    "cancel_runs",
    "delete_run",
    "find_run",
    "get_run",
    "get_wait",
    "list_runs",
    "list_waits",
    "redrive",
    "resolve_doubt",
]


def get_run(connection: Connection, tenant_id: str, run_id: str, *, thread_id: str | None = None) -> Run:
    """The tenant's run (of that thread). Raises NotFound, also for a rolled-back or deleted run."""
    found = find_run(connection, tenant_id, run_id)
    if found is None or (thread_id is not None and found.thread_id != thread_id):
        raise NotFound("Run", run_id)
    return found


def find_run(connection: Connection, tenant_id: str, run_id: str) -> Run | None:
    """The tenant's run, or None."""
    row = connection.execute(
        _runs().where(tables.run.c.tenant_id == tenant_id, tables.run.c.run_id == run_id)
    ).one_or_none()
    return None if row is None else run_of(row)


def list_runs(
    connection: Connection, thread: int, *, status: str | None = None, limit: int = 10, offset: int = 0
) -> list[Run]:
    """Runs of a thread, newest first."""
    statement = _runs().where(tables.run.c.thread == thread)
    if status is not None:
        statement = statement.where(tables.run.c.status == status)
    statement = statement.order_by(tables.run.c.number.desc()).limit(limit).offset(offset)
    return [run_of(row) for row in connection.execute(statement)]


def cancel_runs(
    connection: Connection,
    thread: int,
    action: CancelAction,
    now_us: int,
    *,
    run_ids: Sequence[str] | None = None,
    statuses: Sequence[RunStatus] = (RunStatus.PENDING, RunStatus.RUNNING),
) -> tuple[str, ...]:
    """Ask runs to stop. Raises NothingToCancel when none matched."""
    asked = cancel_active(connection, thread, action, now_us, run_ids, statuses)
    if not asked:
        raise NothingToCancel
    return asked


def delete_run(connection: Connection, tenant_id: str, thread_id: str, run_id: str, now_us: int) -> None:
    """Remove a settled run from every list; its messages stay in the thread.

    Raises NotFound, or Conflict while the run has not ended.
    """
    run = get_run(connection, tenant_id, run_id, thread_id=thread_id)
    if run.status not in SETTLED:
        raise Conflict(f"Run {run_id} is {run.status}; cancel it before you delete it.")
    connection.execute(
        update(tables.run).where(tables.run.c.number == run.number).values(hidden=True, updated_at=now_us)
    )


def get_wait(connection: Connection, tenant_id: str, wait_id: str) -> Wait:
    """The tenant's wait. Raises NotFound."""
    row = connection.execute(
        _waits().where(tables.wait.c.tenant_id == tenant_id, tables.wait.c.wait_id == wait_id)
    ).one_or_none()
    if row is None:
        raise NotFound("Wait", wait_id)
    return wait_of(row)


def list_waits(connection: Connection, thread: int, *, status: str | None = None) -> list[Wait]:
    """Waits of a thread in the order in which they were opened."""
    statement = _waits().where(tables.wait.c.thread == thread)
    if status is not None:
        statement = statement.where(tables.wait.c.status == status)
    rows = connection.execute(statement.order_by(tables.wait.c.opened_at, tables.wait.c.wait_id))
    return [wait_of(row) for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer to a wait, who gave it, and the run that continues the execution."""

    wait_id: str
    value: Any
    actor: str
    submission: RunSubmission  #: the continuing run; its `request` says that it resumes


def answer_wait(connection: Connection, tenant_id: str, answer: Answer, now_us: int) -> Acceptance:
    """Answer an approval; the first answer wins and creates a run that continues the execution.

    Raises NotFound, AlreadyAnswered, Conflict for a step in doubt (which is resolved, not answered), and whatever the
    submission's `check_answer` raises; nothing is answered then.
    """
    replay = receipts.look_up(connection, tenant_id, answer.submission.receipt, now_us=now_us)
    if replay is not None:
        return Acceptance(run=None, replay=replay)
    thread = get_wait(connection, tenant_id, answer.wait_id).thread
    connection.execute(statements.LOCK_THREAD, {"thread": thread})
    # Read it again now that the thread is locked.
    wait = get_wait(connection, tenant_id, answer.wait_id)
    if wait.kind != "approval":
        raise Conflict(f"Wait {wait.wait_id} is a step in doubt: POST /runs/{{run_id}}/steps/{wait.step_key}/resolve.")
    if wait.status == "open" and answer.submission.check_answer is not None:
        answer.submission.check_answer(connection, wait, answer.value)
    _close(connection, wait, answer.value, answer.actor, now_us)
    run = insert_run(connection, answer.submission, wait.thread, wait.thread_id, wait.execution_id, now_us)
    connection.execute(
        update(tables.thread)
        .where(tables.thread.c.number == wait.thread)
        .values(status=ThreadStatus.BUSY, inbox=tables.thread.c.inbox + 1, updated_at=now_us)
    )
    receipts.record(connection, tenant_id, answer.submission.receipt, run, run_id=run.run_id, thread=wait.thread)
    return Acceptance(run=run)


def resolve_doubt(
    connection: Connection,
    run: Run,
    step_key: str,
    value: Any,
    actor: str,
    now_us: int,
    *,
    wait_id: str | None = None,
) -> None:
    """Resolve a step in doubt; the parked run is due at once.

    With `wait_id` only that doubt is resolved: findings about one attempt say nothing about a later one. Raises
    NotInDoubt, AlreadyAnswered for a doubt that is no longer open, and Conflict where the step was in doubt before and
    no `wait_id` says which doubt is meant.
    """
    connection.execute(statements.LOCK_THREAD, {"thread": run.thread})
    wait = tables.wait.c
    rows = connection.execute(
        _waits().where(
            wait.thread == run.thread,
            wait.execution_id == run.execution_id,
            wait.step_key == step_key,
            wait.kind == "in_doubt",
        )
    )
    row = _doubt_meant([wait_of(each) for each in rows], step_key, wait_id)
    _close(connection, row, value, actor, now_us)
    connection.execute(
        update(tables.run)
        .where(tables.run.c.number == row.run, tables.run.c.status == RunStatus.PENDING)
        .values(due_at=0, parked=None, updated_at=now_us)
    )
    connection.execute(
        update(tables.thread)
        .where(tables.thread.c.number == run.thread)
        .values(status=ThreadStatus.BUSY, inbox=tables.thread.c.inbox + 1, updated_at=now_us)
    )


def redrive(connection: Connection, run_id: str, now_us: int) -> Run:
    """Let a run continue whose turns broke off: it is due at once, and its earlier failures no longer count.

    Raises NotFound, and Conflict for a run that is neither broken nor quarantined.
    """
    found = connection.execute(_runs().where(tables.run.c.run_id == run_id)).one_or_none()
    if found is None:
        raise NotFound("Run", run_id)
    connection.execute(statements.LOCK_THREAD, {"thread": found.thread})
    redriven = connection.execute(
        update(tables.run)
        .where(
            tables.run.c.number == found.number,
            tables.run.c.status == RunStatus.PENDING,
            tables.run.c.parked.in_([ParkReason.BROKEN, ParkReason.QUARANTINED]),
        )
        .values(due_at=0, parked=None, orphaned=0, updated_at=now_us)
        .returning(tables.run)
    ).one_or_none()
    if redriven is None:
        raise Conflict(
            f"Run {run_id} is {found.status} and neither broken nor quarantined. To continue a run that has ended,"
            " start a run without input on its thread."
        )
    return run_of(redriven, found.thread_id)


def _doubt_meant(doubts: Sequence[Wait], step_key: str, wait_id: str | None) -> Wait:
    """The open doubt about a step that a resolution is for."""
    if wait_id is not None:
        named = next((each for each in doubts if each.wait_id == wait_id), None)
        if named is None:
            raise NotInDoubt(step_key)
        if named.status != "open":
            raise AlreadyAnswered(wait_id, named.status)
        return named
    still_open = next((each for each in doubts if each.status == "open"), None)
    if still_open is None:
        raise NotInDoubt(step_key)
    if len(doubts) > 1:
        # The sender may mean the earlier doubt: what became of that attempt says nothing about this one.
        raise Conflict(
            f"Step {step_key} was in doubt before; name the doubt that you resolve with wait_id. The open one is"
            f" {still_open.wait_id}."
        )
    return still_open


def _close(connection: Connection, wait: Wait, value: Any, actor: str, now_us: int) -> None:
    closed = connection.execute(
        update(tables.wait)
        .where(tables.wait.c.wait_id == wait.wait_id, tables.wait.c.status == "open")
        .values(
            status="answered",
            answer=msgspec.json.encode(value).decode(),
            answered_by=actor,
            answered_at=now_us,
        )
    )
    if closed.rowcount != 1:
        raise AlreadyAnswered(wait.wait_id, wait.status)


def _runs() -> Select[Any]:
    return (
        select(tables.run, tables.thread.c.thread_id)
        .join(tables.thread, tables.thread.c.number == tables.run.c.thread)
        .where(tables.run.c.hidden.is_(False))
    )


def _waits() -> Select[Any]:
    return select(tables.wait, tables.thread.c.thread_id).join(
        tables.thread, tables.thread.c.number == tables.wait.c.thread
    )


__all__ += ["RunRequest"]
