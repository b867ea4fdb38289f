"""Tasks that are paused until they are resumed."""

from sqlalchemy import Connection, update

from threadmark.state import tables
from threadmark.state.entries.instants import FAR_US, database_now_us
from threadmark.state.errors import Conflict
from threadmark.state.tasks.tasks import Task, TaskStatus, get_task

__all__ = ["pause_task", "resume_task"]

_TASK = tables.task.c


def pause_task(connection: Connection, task_id: str) -> Task:
    """Pause a pending or running task until it is resumed; its worker stops.

    Pausing a paused task has no effect. Raises NotFound, and Conflict for a task that has ended.
    """
    connection.execute(
        update(tables.task)
        .where(_TASK.task_id == task_id, _TASK.status.in_([TaskStatus.PENDING, TaskStatus.RUNNING]))
        .values(
            status=TaskStatus.PENDING,
            owner=None,
            fence=_TASK.fence + 1,
            due_at=FAR_US,
            updated_at=database_now_us(),
        )
    )
    task = get_task(connection, task_id)
    if not task.is_paused:
        raise Conflict(f"Task {task_id} is {task.status}; there is nothing to pause.")
    return task


def resume_task(connection: Connection, task_id: str) -> Task:
    """Resume a paused task, which is then due at once. Raises NotFound, and Conflict for a task that is not paused."""
    resumed = connection.execute(
        update(tables.task)
        .where(_TASK.task_id == task_id, _TASK.status == TaskStatus.PENDING, _TASK.due_at == FAR_US)
        .values(due_at=0, updated_at=database_now_us())
    )
    task = get_task(connection, task_id)
    if resumed.rowcount != 1:
        raise Conflict(f"Task {task_id} is {task.status}; only a paused task can be resumed.")
    return task
