"""Cancellation: a flag in the inbox for the thread's holder; runs that never began end at once."""

from collections.abc import Sequence

from sqlalchemy import Connection, select, update

from threadmark.state import statements, tables
from threadmark.state.entries.run_status import CancelAction, RunStatus, ThreadStatus

__all__ = ["cancel_active", "refresh_status"]


def cancel_active(
    connection: Connection,
    thread: int,
    action: CancelAction,
    now_us: int,
    run_ids: Sequence[str] | None = None,
    statuses: Sequence[RunStatus] = (RunStatus.PENDING, RunStatus.RUNNING),
) -> tuple[str, ...]:
    """Ask the unfinished runs of a thread (all, or those named) to stop; returns the ids of those that were asked."""
    connection.execute(statements.LOCK_THREAD, {"thread": thread})
    run = tables.run.c
    statement = select(run.number, run.run_id, run.status, run.attempts, run.cancel).where(
        run.thread == thread, run.status.in_(list(statuses)), run.hidden.is_(False)
    )
    if run_ids is not None:
        statement = statement.where(run.run_id.in_(list(run_ids)))
    rows = connection.execute(statement).all()
    asked = tuple(row.run_id for row in rows)
    for row in rows:
        if row.status == RunStatus.PENDING and row.attempts == 0:
            values = {
                "status": RunStatus.INTERRUPTED,
                "reason": "cancelled before it began",
                "hidden": action is CancelAction.ROLLBACK,
                "cancel": action,
            }
        else:
            # Parked: make it claimable at once, so that a worker journals the end. A requested rollback stays a
            # rollback.
            asked_for = CancelAction.ROLLBACK if row.cancel == CancelAction.ROLLBACK else action
            values = {"cancel": asked_for, "due_at": 0, "parked": None}
        connection.execute(update(tables.run).where(run.number == row.number).values(updated_at=now_us, **values))
    if asked:
        connection.execute(
            update(tables.thread).where(tables.thread.c.number == thread).values(inbox=tables.thread.c.inbox + 1)
        )
        _ask_again(connection, thread)
        refresh_status(connection, thread, now_us)
    return asked


def _ask_again(connection: Connection, thread: int) -> None:
    """Reopen questions that lapsed because of runs that never began: nothing has moved, so they can be answered."""
    if statements.ACTIVE.first(connection, {"thread": thread}) is not None:
        return
    wait = tables.wait.c
    connection.execute(
        update(tables.wait)
        .where(wait.thread == thread, wait.status == "superseded", wait.folded.is_(False))
        .values(status="open")
    )


def refresh_status(connection: Connection, thread: int, now_us: int) -> None:
    """Update a thread's status after its last unfinished run ended without a turn."""
    wait = tables.wait.c
    if statements.ACTIVE.first(connection, {"thread": thread}) is not None:
        return
    waiting = connection.execute(select(wait.wait_id).where(wait.thread == thread, wait.status == "open")).first()
    status = ThreadStatus.INTERRUPTED if waiting else ThreadStatus.IDLE
    connection.execute(
        update(tables.thread).where(tables.thread.c.number == thread).values(status=status, updated_at=now_us)
    )
