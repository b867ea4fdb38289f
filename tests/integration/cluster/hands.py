"""A deployment inside the test's own process: an API side without a worker, workers beside it, and tools to watch.

Each side is opened as a process of its own would be, so they share nothing but the database and Redis.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.factories import a_submission
from tests.support.waiting import wait_until
from threadmark.app.schema import migrate_all
from threadmark.state import (
    CancelAction,
    Run,
    RunStatus,
    TurnStarted,
    accept,
    cancel_runs,
    find_run,
    fold,
    get_thread,
    read_entries,
    visible,
)
from threadmark.workers.agents.agent import ChatAgent, Registry
from threadmark.workers.agents.tools import Effect, RetryAfter, RetryPolicy, tool
from threadmark.workers.settings.settings import Settings
from threadmark.workers.wiring import Resources, open_resources

__all__ = ["WORLD", "Deployment", "World", "registry"]

TENANT = "tenant-1"


@dataclass
class World:
    """What the tools did, and what keeps them."""

    calls: Counter[str] = field(default_factory=Counter)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def forget(self) -> None:
        """Begin anew, with the gate shut."""
        self.calls.clear()
        self.released = asyncio.Event()


WORLD = World()


@tool(effect=Effect.PURE)
async def note(label: str) -> str:
    """Note that it was called."""
    WORLD.calls[label] += 1
    return label


@tool(effect=Effect.PURE, timeout_s=120)
async def hold(label: str) -> str:
    """Wait at the gate."""
    WORLD.calls[label] += 1
    await WORLD.released.wait()
    return label


@tool(effect=Effect.PURE, retry=RetryPolicy(first_delay_s=0.01))
async def later(label: str, delay_s: float) -> str:
    """Ask for time at the first call."""
    WORLD.calls[label] += 1
    if WORLD.calls[label] == 1:
        raise RetryAfter(delay_s)
    return label


registry = Registry([ChatAgent(name="chat", tools=[note, hold, later])])


@dataclass
class Deployment:
    """The API side, and how to open a worker."""

    settings: Settings
    api: Resources

    @classmethod
    @asynccontextmanager
    async def over(
        cls, folder: Path, database_url: str, redis_url: str | None, **settings: str
    ) -> AsyncIterator["Deployment"]:
        """A deployment over a fresh database."""
        environment = {
            "THREADMARK_DATA_DIR": str(folder),
            "THREADMARK_STATE_DATABASE_URL": database_url,
            "THREADMARK_AGENTS": f"{__name__}:registry",
            "THREADMARK_SWEEP_S": "0.3",
            **({} if redis_url is None else {"THREADMARK_REDIS_URL": redis_url}),
            **settings,
        }
        chosen = Settings.from_environment(environment)
        migrate_all(chosen)
        WORLD.forget()
        async with open_resources(chosen, with_worker=False) as api:
            yield cls(chosen, api)

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[Resources]:
        """One more worker, as `threadmark worker` opens it."""
        async with open_resources(self.settings, with_worker=True, with_readers=False) as resources:
            yield resources

    async def say(self, script: str, *, notify: bool = True) -> Run:
        """Have a run accepted, and ring for it after the commit."""
        submission = a_submission(script, tenant_id=TENANT)
        run = (await self.api.database.write(lambda connection: accept(connection, submission, self.api.now_us()))).run
        assert run is not None
        if notify:
            self.api.notifier.notify(run.run_id, run.attempts + 1)
        return run

    async def cancel(self, run: Run) -> None:
        """Ask the run to stop, and give notice after the commit."""
        cancelled = await self.api.database.write(
            lambda connection: cancel_runs(
                connection, run.thread, CancelAction.INTERRUPT, self.api.now_us(), run_ids=[run.run_id]
            )
        )
        self.api.notifier.notice(cancelled)

    async def seen(self, run: Run) -> Run:
        """The run as it is now."""
        found = await self.api.database.read(lambda connection: find_run(connection, TENANT, run.run_id))
        assert found is not None
        return found

    async def becomes(self, run: Run, status: RunStatus) -> Run:
        """The run, once it has the status."""

        async def has_it() -> Run | None:
            found = await self.seen(run)
            return found if found.status is status else None

        return await wait_until(has_it, description=f"run {run.run_id} to be {status}", timeout_s=30) or run

    async def turn_count(self, run: Run) -> int:
        """How many turns the journal has of the run."""
        entries = await self.api.journal.read(run.thread)
        return sum(isinstance(each.entry, TurnStarted) for each in entries if each.run == run.number)

    async def transcript(self, run: Run) -> list[str]:
        """What was said on the run's thread."""
        thread = await self.api.database.read(lambda connection: get_thread(connection, TENANT, run.thread_id))
        entries = await self.api.database.read(lambda connection: read_entries(connection, thread.number))
        return [str(each.content) for each in fold(visible(entries, thread.lineage)).messages]
