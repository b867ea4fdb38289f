"""A stage for turns: a real database, real tools, a model with a script, a clock that the test moves."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from tests.conformance.store import Store
from tests.support.factories import TENANT, Reply, ScriptedModel, a_submission
from threadmark.compaction import CompactionService
from threadmark.state import (
    Answer,
    CancelAction,
    Claim,
    Message,
    Recorded,
    Run,
    RunRequest,
    ThreadState,
    Wait,
    answer_wait,
    cancel_runs,
    fold,
    fold_thread,
    resolve_doubt,
    visible,
)
from threadmark.workers.agents.agent import ChatAgent, Limits, Registry
from threadmark.workers.agents.tools import Tool
from threadmark.workers.feeds.local_feed import LocalFeed
from threadmark.workers.models import check_call_results
from threadmark.workers.models.prompt import to_openai
from threadmark.workers.tasks.compaction_tasks import Compactor
from threadmark.workers.turn.turn import Turn
from threadmark.workers.turn.turn_parts import TurnParts

__all__ = ["Clock", "Stage", "open_stage"]

#: More turns than any story of these tests takes.
TURN_COUNT_MAX = 50


@dataclass
class Clock:
    """Stands still until a test moves it; it stays behind the database's clock, so what is due here is due there."""

    began_at: datetime = field(default_factory=lambda: datetime.now(UTC) - timedelta(days=1))
    passed_s: float = 0.0

    def now(self) -> datetime:
        """The present."""
        return self.began_at + timedelta(seconds=self.passed_s)

    def pass_s(self, seconds: float) -> None:
        """Let time go by."""
        self.passed_s += seconds


@dataclass
class Stage:
    """One worker's desk, and a person in front of it."""

    store: Store
    parts: TurnParts
    agent: ChatAgent
    model: ScriptedModel
    clock: Clock
    _worker_count: int = 0

    @property
    def registry(self) -> Registry:
        """The one agent, as workers and tasks find it."""
        return Registry([self.agent])

    def compactor(self, service: CompactionService) -> Compactor:
        """Compactions by the stage's model."""
        return Compactor(service=service, model=self.parts.model, now=self.clock.now)

    async def say(self, text: str = "go", **changes: Any) -> Run:
        """Have a run accepted that says something."""
        return await self.store.accept(text, **changes)

    async def go_on(self, run: Run, **changes: Any) -> Run:
        """Have a run accepted without input, on the thread of another."""
        return await self.store.accept(thread_id=run.thread_id, **changes)

    async def claim(self) -> Claim:
        """Claim what is due, as a new worker: the previous holder is dead."""
        await self.store.bury_all()
        self._worker_count += 1
        (claimed,) = await self.store.claim(f"worker-{self._worker_count}", count_max=1)
        return claimed

    async def turn(self, *tools: Tool) -> Turn:
        """Claim what is due; the turn is not taken yet. `tools` are those of a later deploy."""
        return self.turn_of(await self.claim(), *tools)

    def turn_of(self, claimed: Claim, *tools: Tool) -> Turn:
        """The turn of a run that was claimed."""
        return Turn(self.parts, claimed, replace(self.agent, tools=tools) if tools else self.agent)

    async def play(self, *tools: Tool) -> None:
        """Take one turn of what is due, to its end."""
        await (await self.turn(*tools)).take()

    async def play_out(self, run: Run) -> Run:
        """Take turns until the run has ended or only a person can move it; the clock moves over its back-offs."""
        for _ in range(TURN_COUNT_MAX):
            seen = await self.store.run(run)
            if seen.status not in ("pending", "running") or seen.parked == "in_doubt":
                return seen
            if seen.parked == "backoff":
                self.clock.pass_s(max(0.0, (seen.due_at_us - self.parts.now_us()) / 1_000_000))
            await self.play()
        raise AssertionError(f"run {run.run_id} did not end within {TURN_COUNT_MAX} turns")

    async def entries(self, run: Run) -> list[Recorded]:
        """The journal of the run's thread."""
        return await self.store.entries(run.thread)

    async def entries_of(self, run: Run, kind: type[Any]) -> list[Any]:
        """The entries of one kind."""
        return [each.entry for each in await self.entries(run) if isinstance(each.entry, kind)]

    async def state(self, run: Run) -> ThreadState:
        """The thread as it stands: its journal verifies, the fold that is kept agrees, a model would take it."""
        thread = await self.store.thread(run.thread_id)
        assert await self.store.journal.verify(thread) == []
        state = fold(visible(await self.store.entries(run.thread), thread.lineage))
        kept = self.parts.journal.fold_cache.find(thread)
        assert (await self.store.read(partial(fold_thread, thread=thread, base=kept))).state == state
        if not state.open_calls:
            check_call_results(to_openai("", state.messages))
        return state

    async def messages(self, run: Run) -> list[Message]:
        """The transcript of the run's thread."""
        return (await self.state(run)).messages

    async def waits(self, run: Run, status: str = "open") -> list[Wait]:
        """The questions of the run's thread."""
        return await self.store.waits(run, status)

    async def answer(self, wait: Wait, value: Any = True) -> Run:
        """A person answers an approval; the run that goes on."""
        submission = replace(a_submission(), request=RunRequest(resumes=True))
        answer = Answer(wait_id=wait.wait_id, value=value, actor="ann", submission=submission)
        made = await self.store.write(lambda connection: answer_wait(connection, TENANT, answer, self.store.now_us()))
        assert made.run is not None
        return made.run

    async def resolve(self, run: Run, value: Any) -> None:
        """A person settles the one doubt of a run."""
        (wait,) = await self.waits(run)
        await self.settle(run, wait.step_key, value)

    async def settle(self, run: Run, step_key: str, value: Any) -> None:
        """A person settles the doubt about a step."""
        await self.store.write(
            lambda connection: resolve_doubt(connection, run, step_key, value, "ann", self.store.now_us())
        )

    async def cancel(self, run: Run, action: CancelAction = CancelAction.INTERRUPT) -> None:
        """Request a cancellation without notifying the worker."""
        await self.store.write(lambda connection: cancel_runs(connection, run.thread, action, self.store.now_us()))


@asynccontextmanager
async def open_stage(
    store: Store, data_dir: Path, replies: Sequence[Reply], tools: Sequence[Tool] = (), **limits: Any
) -> AsyncIterator[Stage]:
    """A stage over a database."""
    agent = ChatAgent(name="chat", tools=tools, limits=Limits(**limits))
    model, clock = ScriptedModel(replies), Clock()
    parts = TurnParts(
        database=store.database,
        journal=store.journal,
        model=model,
        feed=LocalFeed(),
        data_dir=data_dir,
        now=clock.now,
        chance=lambda: 0.0,
    )
    yield Stage(store=store, parts=parts, agent=agent, model=model, clock=clock)
