"""Compactions as background tasks: ordered in one commit with their task, performed by whichever worker takes it."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection

from threadmark.compaction import Compaction, CompactionService, Order, Summariser, SummariserKind
from threadmark.state import NotFound, new_id
from threadmark.state.tasks.tasks import NewTask, Task, add_task
from threadmark.workers.fleet.services import Services
from threadmark.workers.models.summariser import ModelSummariser
from threadmark.workers.tasks.task_context import Reschedule, TaskContext

__all__ = [
    "COMPACT_THREAD",
    "add_compaction_task",
    "compact_thread",
    "order_compaction",
    "perform",
    "service_of",
    "summariser_of",
]

#: The kind of the task that performs one compaction.
COMPACT_THREAD = "compact_thread"
#: How often a compaction that waits for a run, or that another process holds, is looked at again (seconds).
AGAIN_S = 1.0


async def order_compaction(
    services: Services,
    tenant_id: str,
    thread_id: str,
    order: Order,
    *,
    check: Callable[[Connection], None] | None = None,
) -> tuple[Compaction, bool]:
    """Order a compaction and the task that performs it, in one commit; with whether it is new.

    `check` is asked in that commit whether there may be a new one. Raises NotFound for the thread, KeyReused for the
    key of another order, and what `check` raises; nothing is ordered then.
    """
    now_us = services.now_us()

    def extra_writes(connection: Connection, made: Compaction) -> None:
        if check is not None:
            check(connection)
        add_compaction_task(connection, made, now_us=now_us)

    return await service_of(services).compactions.begin(tenant_id, thread_id, order, extra_writes=extra_writes)


async def perform(services: Services, compaction_id: str, kind: SummariserKind) -> Compaction:
    """Perform a compaction in this process; as it is then. Raises NotFound."""
    holder = new_id(services.now_us())
    return await service_of(services).compactions.perform(
        compaction_id,
        holder=holder,
        worker_id=services.worker_id,
        summariser=summariser_of(services, kind),
        price=services.price,
    )


def summariser_of(services: Services, kind: SummariserKind) -> Summariser | None:
    """Who writes the summary: the server's model, or nobody."""
    return ModelSummariser(services.model) if kind is SummariserKind.MODEL else None


async def compact_thread(services: Services, task: Task, _: TaskContext) -> dict[str, Any]:
    """The handler of COMPACT_THREAD. A compaction that is gone with its thread is nothing to do."""
    try:
        done = await perform(services, task.payload["compaction_id"], SummariserKind(task.payload["summariser"]))
    except NotFound:
        return {"status": "gone"}
    if done.is_open:
        raise Reschedule(AGAIN_S)
    return {"status": str(done.status), "error_code": done.error_code}


def add_compaction_task(connection: Connection, ordered: Compaction, *, now_us: int) -> None:
    """Have some worker perform the compaction."""
    new = NewTask(
        tenant_id=ordered.tenant_id,
        kind=COMPACT_THREAD,
        key=ordered.compaction_id,
        payload={"compaction_id": ordered.compaction_id, "summariser": str(ordered.summariser)},
    )
    add_task(connection, new, now_us)


def service_of(services: Services) -> CompactionService:
    """The verbs of compaction. Raises RuntimeError in a process that has none."""
    if services.compaction is None:
        raise RuntimeError("this process compacts nothing")
    return services.compaction
