"""What compactions took out of the view of the thread that a turn holds, for the tools of its agent."""

from collections.abc import Sequence
from dataclasses import dataclass

from threadmark.compaction import CompactionService, DropQuery, Expanded, FoundDrop

__all__ = ["ThreadDrops"]


@dataclass(frozen=True, slots=True)
class ThreadDrops:
    """The drops of one thread."""

    service: CompactionService
    tenant_id: str
    thread_id: str
    agent: str

    async def search(self, query: DropQuery, key: str) -> Sequence[FoundDrop]:
        """The best answers among what the thread's view does not show, noted once for each `key`."""
        found = await self.service.drops.search_thread(self.tenant_id, self.thread_id, query)
        await self.service.recalls.note(
            self.tenant_id,
            self.thread_id,
            [each.drop_id for each in found],
            "agent",
            requested_by=f"agent {self.agent}",
            key=key,
        )
        return found

    async def expand(self, summary_id: str, budget_tokens: int, from_seq: int) -> Expanded:
        """The entries of a summary of the thread. Raises NotFound."""
        return await self.service.segments.expand(
            self.tenant_id, self.thread_id, summary_id, budget_tokens=budget_tokens, from_seq=from_seq
        )
