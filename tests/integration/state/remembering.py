"""A stage whose agent has a memory: a real one, over a SQLite file of its own."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from memory import Answers, Question, Recollection
from tests.conformance.store import Store
from tests.factories import Reply
from tests.integration.state.stage import Stage, open_stage
from tests.memory_house import house
from workers.agents import Registry
from workers.forgetting import JournalCopies
from workers.memory_policy import MemoryPolicy
from workers.tools import Tool

__all__ = ["Counted", "remembering"]


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
    policy: MemoryPolicy | None = None,
    **limits: Any,
) -> AsyncIterator[tuple[Stage, Counted]]:
    """A stage over a database, and the memory behind it."""
    async with house(f"sqlite:///{folder / 'memory.db'}", copies=JournalCopies(store.database)) as memory:
        counted = Counted(memory)
        async with open_stage(store, folder, replies, tools, **limits) as stage:
            stage.agent = replace(stage.agent, memory=policy or MemoryPolicy())
            stage.desk = replace(stage.desk, recollection=memory, registry=Registry([stage.agent]))
            yield stage, counted
