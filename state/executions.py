"""Which execution a thread is at: what a run without input carries on, and what it must not carry on."""

from collections.abc import Sequence

from sqlalchemy import Connection, or_, select, update

from state import tables
from state.ids import ExecutionId, new_id
from state.run import CancelAction, RunStatus

__all__ = ["part_from", "present_execution"]


def present_execution(connection: Connection, thread: int, branch: int, *, active: bool) -> ExecutionId | None:
    """The execution that a run without input carries on: that of the last run, or of the last entry of the branch.

    None after a fork and after a rollback: on the branch that was left the execution may have done the very steps that
    come next, and whoever knows their keys would take the new ones for repetitions.
    """
    run, entry = tables.run.c, tables.entry.c
    stays = or_(run.cancel.is_(None), run.cancel != CancelAction.ROLLBACK)
    if active:
        last = select(run.execution_id, stays).where(run.thread == thread, run.hidden.is_(False))
        found = connection.execute(last.order_by(run.number.desc()).limit(1)).one_or_none()
        return found.execution_id if found is not None and found[1] else None
    on_branch = select(run.execution_id).join(tables.entry, entry.run == run.number)
    return connection.execute(
        on_branch.where(entry.thread == thread, entry.branch == branch, stays).order_by(entry.seq.desc()).limit(1)
    ).scalar_one_or_none()


def part_from(connection: Connection, thread: int, executions: Sequence[str], now_us: int) -> None:
    """Runs that were to carry on what is rolled back begin an execution of their own: the steps of the other were done,
    and their keys are taken.
    """
    run = tables.run.c
    connection.execute(
        update(tables.run)
        .where(
            run.thread == thread,
            run.execution_id.in_(executions),
            run.status == RunStatus.PENDING,
            run.attempts == 0,
        )
        .values(execution_id=new_id(now_us))
    )
