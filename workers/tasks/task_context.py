"""What a background task is to its handler, and what becomes of an attempt that failed.

A handler belongs to a kind. It may be cut short anywhere, by a death or by a stop, and is begun again by whichever
worker comes first, so what it does it does by a key of its own, or in one commit. What it reports as progress is there
for the next attempt, in `task.progress`.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import msgspec

from threadmark.db.execution.pools import act_for
from threadmark.state import Database
from threadmark.state.tasks.task_claims import HeldTask, report_task
from threadmark.state.tasks.tasks import Task
from threadmark.workers.agents.tools import NonRetryable, RetryAfter, RetryPolicy

__all__ = ["Handler", "Reschedule", "TaskContext", "TaskLost", "attempt", "delay_s_after"]

#: A failed task is tried again after 2, 8, 32, … seconds, up to an hour; eight attempts take about three hours.
RETRY = RetryPolicy(attempt_max=8, first_delay_s=2.0, factor=4.0, delay_max_s=3_600.0)


class TaskLost(Exception):
    """The task was cancelled, or belongs to another worker: whatever its handler does from here on is not wanted."""


class Reschedule(Exception):
    """Raised by a handler: nothing failed, and the task cannot be done before `delay_s` seconds have passed."""

    def __init__(self, delay_s: float) -> None:
        super().__init__(f"asked to come back in {delay_s:g} s")
        self.delay_s = delay_s


class TaskContext:
    """What a handler is given beside its task."""

    def __init__(self, database: Database, held: HeldTask, progress: Any = None) -> None:
        self._database = database
        self.held = held
        self._before = msgspec.json.encode(progress)
        self.has_progressed = False  #: whether anything was reported that the attempts before had not

    async def report(self, progress: Any) -> None:
        """Keep how far the task has got (JSON), for everybody to see and for the next attempt to begin from.

        Raises TaskLost.
        """
        kept = await self._database.write(
            lambda connection: report_task(connection, self.held, progress), repeatable=True
        )
        if not kept:
            raise TaskLost(self.held.task_id)
        self.has_progressed = self.has_progressed or msgspec.json.encode(progress) != self._before


#: Does a task and returns its result (JSON). Raises Reschedule where it has to wait, NonRetryable for a task that can
#: never be done, RetryAfter for a failure that says when to try again; after anything else it is tried again, a few
#: times, later and later.
Handler: TypeAlias = Callable[[Task, TaskContext], Awaitable[Any]]


async def attempt(handler: Handler, task: Task, context: TaskContext) -> Any:
    """One attempt at the task; what it returns is JSON."""
    act_for(task.tenant_id)
    result = await handler(task, context)
    msgspec.json.encode(result)  # raises here, as an error of the handler's, what could not be kept
    return result


def delay_s_after(task: Task, error: BaseException, chance: float) -> float | None:
    """Seconds until the next attempt; None when there is none."""
    failures = task.failures + 1
    if isinstance(error, NonRetryable) or not RETRY.allows(failures + 1):
        return None
    return error.delay_s if isinstance(error, RetryAfter) else RETRY.delay_s(failures, chance)
