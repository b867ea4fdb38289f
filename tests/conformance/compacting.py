"""Threads with something to say in a state database, and the service that compacts them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, Engine

from tests.conformance.store import Store
from tests.support.compaction_threads import PLANTED
from tests.support.factories import TENANT
from threadmark.compaction import (
    Compaction,
    CompactionService,
    Order,
    Policy,
    Summariser,
    forget_thread,
    migrate,
    remove_thread_rows,
)
from threadmark.state import (
    Claim,
    Deletion,
    Message,
    ModelReplied,
    RunChanges,
    RunOutcome,
    RunSettled,
    RunStatus,
    StepKey,
    Thread,
    ThreadStatus,
    Usage,
    delete_thread,
    finish_deletions,
    open_engine,
)

__all__ = ["PLANTED", "POLICY", "Compacting", "compacting", "compaction_engine"]

POLICY = Policy(keep_last_turns=1, min_gain=0.0, summary_tokens=60, appendix_tokens=2_000)
_PADDING = "Here is what I found so far about the matter, which is plenty and of no great use to anybody. " * 6


@dataclass
class Compacting:
    """A state database, the service over it, and what tests do with both."""

    store: Store
    service: CompactionService
    turn_count: int = 0

    async def thread(self, turns: int = 8, thread_id: str = "thread-1") -> Thread:
        """A thread with so many settled turns; every one plants a fact."""
        await self.store.thread(thread_id)
        for _ in range(turns):
            await self.say(thread_id)
        return await self.seen(thread_id)

    async def say(self, thread_id: str = "thread-1", text: str | None = None) -> int:
        """One turn: a run is accepted, answered and settled; the seq of the answer."""
        self.turn_count += 1
        number = self.turn_count
        asked = text or f"{PLANTED[number % len(PLANTED)]} And ticket OPS-{number} is open."
        run = await self.store.accept(asked, thread_id=thread_id)
        # A thread that a commit has locked is passed over: the next search for work finds it.
        claims: list[Claim] = []
        while not claims:
            claims = await self.store.claim(count_max=1)
        claimed, writer = claims[0], self.store.writer(claims[0])
        await self.store.begin(claimed, writer)
        replied = writer.append(
            ModelReplied(
                step_key=StepKey("model-1"),
                message=Message(id=f"ai-{number}", type="ai", content=f"{_PADDING} Reply {number}."),
                model="offline",
                usage=Usage(10, 10),
            )
        )
        writer.append(RunSettled(run_id=run.run_id, status="success"))
        await writer.flush(RunChanges(ending=RunOutcome(status=RunStatus.SUCCESS, thread_status=ThreadStatus.IDLE)))
        return replied.seq

    async def delete(self, thread_id: str = "thread-1") -> None:
        """Delete the thread, with what compaction has about it."""
        deletion = await self.store.write(partial(_delete, thread_id=thread_id))
        await finish_deletions(self.store.database, [deletion], remove_thread_rows)

    async def seen(self, thread_id: str = "thread-1") -> Thread:
        """The thread as it is now."""
        return await self.store.thread(thread_id)

    async def compact(
        self, thread_id: str = "thread-1", *, summariser: Summariser | None = None, **changes: Any
    ) -> Compaction:
        """Order a compaction and perform it."""
        order = self.order(**changes)
        done, _ = await self.service.compactions.begin(TENANT, thread_id, order)
        return await self.service.compactions.perform(done.compaction_id, holder="me", summariser=summariser)

    def order(self, **changes: Any) -> Order:
        """An order with a key of its own."""
        self.turn_count += 1
        return Order(**{"key": f"key-{self.turn_count}", "policy": POLICY, **changes})

    async def render_hash(self, thread_id: str = "thread-1", view_id: str | None = None) -> str:
        """What names the rendered view."""
        return (await self.service.views.show(TENANT, thread_id, view_id)).rendered.render_hash

    async def text(self, thread_id: str = "thread-1") -> str:
        """All that the model would be sent of the thread."""
        shown = await self.service.views.show(TENANT, thread_id)
        return "\n".join(str(part.content) for part in shown.rendered.parts)


@pytest.fixture
def compaction_engine(state_url: str) -> Iterator[Engine]:
    """An engine over a database with the tables of state and of compaction."""
    engine = open_engine(state_url, write=True)
    migrate(engine)
    yield engine
    engine.dispose()


@pytest.fixture
async def compacting(compaction_engine: Engine, store: Store) -> Compacting:
    """The service over an empty database."""
    assert compaction_engine is not None
    service = CompactionService(store.database, now=lambda: datetime.now(UTC), fold_cache=store.journal.fold_cache)
    return Compacting(store, service)


def _delete(connection: Connection, thread_id: str) -> Deletion:
    deletion = delete_thread(connection, TENANT, thread_id)
    forget_thread(connection, deletion.thread)
    return deletion
