"""A stage whose agent has a memory: a real one, over a SQLite file of its own."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.conformance.store import Store
from tests.integration.state.stage import Stage, open_stage
from tests.support.factories import Reply
from tests.support.memory_house import house
from threadmark.memory import Answers, Question, Recollection
from threadmark.workers.agents.memory_policy import MemoryPolicy
from threadmark.workers.agents.tools import Tool
from threadmark.workers.tasks.journal_erasure import JournalCopies

__all__ = ["Counted", "remembering"]

#: On a loaded machine a recall may take longer than the two seconds that a run waits by default, and go on without.
PATIENT = MemoryPolicy(timeout_s=60.0)


class Counted:
    """Counts the questions that reach a memory."""

    def __init__(self, memory: Recollection) -> None:
        self.memory = memory
        self.asked: list[Question] = []
        self._recall = memory.recall
        memory.recall = self._count  # type: ignore[method-assign]

    async def _count(self, question: Question) -> Answers:
        self.asked.append(question)
        return await self._recall(question)


@asynccontextmanager
async def remembering(
    store: Store,
    folder: Path,
    replies: Sequence[Reply],
    tools: Sequence[Tool] = (),
    policy: MemoryPolicy = PATIENT,
    **limits: Any,
) -> AsyncIterator[tuple[Stage, Counted]]:
    """A stage over a database, and the memory behind it."""
    async with house(f"sqlite:///{folder / 'memory.db'}", copies=JournalCopies(store.database)) as memory:
        counted = Counted(memory)
        async with open_stage(store, folder, replies, tools, **limits) as stage:
            stage.agent = replace(stage.agent, memory=policy)
            stage.parts = replace(stage.parts, recollection=memory)
            yield stage, counted
