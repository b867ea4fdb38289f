"""What a compaction drops and may matter beyond its thread goes to memory, from the outbox that was committed with it.

Delivered twice, it is remembered once: a moment tells a statement once. While memory is down the outbox keeps.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from threadmark.compaction import QueuedPromotion, Trust
from threadmark.compaction.store.ledger_rows import due_promotions, set_promotion
from threadmark.memory import Draft, Origin, Recollection, RecollectionError, Refused, Scope
from threadmark.memory import Trust as MemoryTrust
from threadmark.memory.model.provenance import quote_hash
from threadmark.state import Database, Journal, NotFound, Thread, from_us, list_runs, to_us
from threadmark.state.tasks.tasks import Task
from threadmark.state.threads.thread_numbers import thread_numbers_of
from threadmark.workers.agents.agent import Registry
from threadmark.workers.agents.memory_policy import MemoryPolicy, NoScope, scope_of
from threadmark.workers.tasks.task_context import Reschedule, TaskContext

__all__ = ["Promotions"]

COUNT_MAX = 50
AGAIN_S = 30.0  #: while this server has no memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotions:
    """What queued statements go through: from the outbox of `database` to `recollection` (None: no memory here)."""

    database: Database
    journal: Journal
    registry: Registry
    recollection: Recollection | None
    now: Callable[[], datetime]

    async def deliver(self, task: Task, _: TaskContext) -> dict[str, Any]:
        """The handler of PROMOTE: deliver what the compaction queued; how many were kept and refused."""
        if self.recollection is None:
            raise Reschedule(AGAIN_S)
        counts = {"kept": 0, "refused": 0}
        compaction_id = str(task.payload["compaction_id"])
        while batch := await self.database.read(
            partial(due_promotions, now_us=to_us(self.now()), count_max=COUNT_MAX, compaction_id=compaction_id)
        ):
            for each in batch:
                kept = await self._keep(self.recollection, each)
                counts["kept" if kept else "refused"] += 1
        return counts

    async def _keep(self, recollection: Recollection, queued: QueuedPromotion) -> bool:
        """Keep one statement; False, with the reason in the outbox, for one that memory will never take."""
        values: dict[str, Any]
        try:
            scope, draft = await self._statement(queued)
            (verdict,) = await recollection.remember([draft], scope=scope, now=self.now())
            values = {"status": "done", "memory_id": verdict.assertion_id}
        except (NoScope, NotFound, Refused) as error:
            values = {"status": "failed", "error": str(error)}
        except RecollectionError as error:
            raise Reschedule(AGAIN_S) from error
        await self.database.write(
            partial(set_promotion, promotion_id=queued.promotion.promotion_id, values=values), repeatable=True
        )
        return "memory_id" in values

    async def _statement(self, queued: QueuedPromotion) -> tuple[Scope, Draft]:
        """The statement in the scope of the agent that the thread talks to. Raises NoScope and NotFound."""
        thread = await self.database.read(partial(thread_numbers_of, number=queued.thread))
        if thread is None:
            raise NotFound("Thread", str(queued.thread))
        assistant = await self._assistant(thread)
        agent = self.registry.find(assistant)
        policy = (agent.memory if agent is not None else None) or MemoryPolicy()
        scope = scope_of(
            policy,
            tenant_id=thread.tenant_id,
            assistant=assistant,
            thread_id=thread.thread_id,
            metadata=thread.metadata,
        )
        promotion, source = queued.promotion, queued.promotion.sources[-1]
        entries = await self.journal.read(thread.number, after_seq=source.seq - 1, count_max=1)
        if not entries or entries[0].seq != source.seq:
            raise NotFound("Entry", f"{thread.thread_id}/{source.seq}")
        at = from_us(entries[0].at_us)
        origin = Origin(
            thread_ref=thread.thread_id,
            seq=source.seq,
            message_ref=f"compaction-{queued.compaction_id}",
            actor=str(promotion.role),
            at=at,
            content_hash=quote_hash(promotion.text),
            char_from=source.start,
            char_to=source.end,
            quote=promotion.text,
        )
        return scope, Draft(
            namespace=scope.namespace,
            text=promotion.text,
            observed_at=at,
            kind=promotion.cls,
            trust=_TRUST[promotion.trust],
            origin=origin,
            asserted_by="user" if promotion.trust is Trust.USER else str(promotion.trust),
            extractor="compaction",
        )

    async def _assistant(self, thread: Thread) -> str:
        runs = await self.database.read(lambda connection: list_runs(connection, thread.number, limit=1))
        if not runs:
            raise NoScope("no run of the thread says which agent it talks to")
        return runs[0].assistant


_TRUST = {each: MemoryTrust(each.value) for each in Trust}
