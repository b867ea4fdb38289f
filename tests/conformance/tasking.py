"""Tasks as their specs speak of them: added, claimed, looked at."""

from typing import Any

from tests.conformance.store import Store
from tests.support.factories import TENANT
from threadmark.state.entries.entry import Failure
from threadmark.state.tasks.task_claims import HeldTask, claim_tasks
from threadmark.state.tasks.tasks import NewTask, Task, add_task, get_task

__all__ = ["BROKEN", "KINDS", "SOON_US", "a_task", "added", "claimed", "held", "seen"]

KINDS = ("mend",)
SOON_US = 3_600_000_000
BROKEN = Failure("ValueError", "it broke")


def a_task(key: str = "one", **changes: Any) -> NewTask:
    """A task to be added."""
    values: dict[str, Any] = {"tenant_id": TENANT, "kind": "mend", "key": key, "payload": {"part": key}}
    return NewTask(**values | changes)


async def added(store: Store, key: str = "one", **changes: Any) -> Task:
    """A task that was added."""
    return await store.write(lambda connection: add_task(connection, a_task(key, **changes), store.now_us()))


async def claimed(store: Store, worker_id: str = "worker-1", count_max: int = 100) -> list[Task]:
    """What the worker, which lives, has claimed."""
    await store.alive(worker_id)
    return await store.write(lambda connection: claim_tasks(connection, worker_id, KINDS, count_max))


def held(task: Task) -> HeldTask:
    """The right to end it."""
    return HeldTask(number=task.number, task_id=task.task_id, fence=task.fence)


async def seen(store: Store, task: Task) -> Task:
    """The task as it is now."""
    return await store.read(lambda connection: get_task(connection, task.task_id))
