"""Compactions as background tasks: ordered in one commit with their task, performed by whichever worker takes it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from threadmark.compaction import (
    Compaction,
    CompactionService,
    Order,
    Policy,
    Preview,
    Price,
    Summariser,
    SummariserKind,
    named_policy,
)
from threadmark.state import Database, NotFound, new_id, to_us
from threadmark.state.tasks.tasks import NewTask, Task, add_task
from threadmark.workers.agents.compaction_policy import CompactionPolicy
from threadmark.workers.models import ChatModel
from threadmark.workers.models.summariser import ModelSummariser
from threadmark.workers.tasks.task_context import Reschedule, TaskContext

__all__ = ["COMPACT_THREAD", "Compactor", "add_compaction_task", "compact_thread", "resolved_policy"]

#: The kind of the task that performs one compaction.
COMPACT_THREAD = "compact_thread"
#: How often a compaction that waits for a run, or that another process holds, is looked at again (seconds).
AGAIN_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Compactor:
    """Compactions as this process performs them: by its model, at that model's price, and as its worker.

    Attributes:
        price: What `model` costs; None: not configured, and no compaction with a cap in money uses the model.
        worker_id: The worker of this process; None in one that only serves HTTP.
    """

    service: CompactionService
    model: ChatModel
    now: Callable[[], datetime]
    price: Price | None = None
    worker_id: str | None = None

    def summariser(self, kind: SummariserKind) -> Summariser | None:
        """The author of the summary: the server's model, or None."""
        return ModelSummariser(self.model) if kind is SummariserKind.MODEL else None

    async def preview(self, tenant_id: str, thread_id: str, order: Order) -> Preview:
        """What the order would come to; nothing is kept. Raises NotFound."""
        summariser = self.summariser(order.summariser)
        return await self.service.compactions.preview(tenant_id, thread_id, order, summariser, self.price)

    async def order(
        self,
        tenant_id: str,
        thread_id: str,
        order: Order,
        *,
        check: Callable[[Connection], None] | None = None,
    ) -> tuple[Compaction, bool]:
        """Order a compaction and the task that performs it, in one commit; with whether it is new.

        `check` is asked in that commit whether there may be a new one. Raises NotFound for the thread, KeyReused for
        the key of another order, and what `check` raises; nothing is ordered then.
        """
        now_us = to_us(self.now())

        def extra_writes(connection: Connection, made: Compaction) -> None:
            if check is not None:
                check(connection)
            add_compaction_task(connection, made, now_us=now_us)

        return await self.service.compactions.begin(tenant_id, thread_id, order, extra_writes=extra_writes)

    async def perform(self, compaction_id: str, kind: SummariserKind) -> Compaction:
        """Perform a compaction in this process; as it is then. Raises NotFound."""
        return await self.service.compactions.perform(
            compaction_id,
            holder=new_id(to_us(self.now())),
            worker_id=self.worker_id,
            summariser=self.summariser(kind),
            price=self.price,
        )


async def resolved_policy(policy: CompactionPolicy, database: Database, tenant_id: str) -> Policy:
    """What the agent gives, or what the tenant keeps now under the name that it gives. Raises NotFound."""
    name = policy.policy
    if not isinstance(name, str):
        return name
    return await database.read(lambda connection: named_policy(connection, tenant_id, name))


async def compact_thread(task: Task, _: TaskContext, *, compactor: Compactor) -> dict[str, Any]:
    """The handler of COMPACT_THREAD. A compaction that is gone with its thread is nothing to do."""
    try:
        done = await compactor.perform(task.payload["compaction_id"], SummariserKind(task.payload["summariser"]))
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
