"""The faults that a fleet is put through, each by its name: of processes, of PostgreSQL and of Redis."""

import asyncio
import contextlib
import os
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Literal, LiteralString

import psycopg

from tests.crash.fleet import LEASE_TTL_S, Fleet
from tests.crash.supervised_process import Mortal

__all__ = ["FAULTS", "Storm"]

OF_PROCESSES = ("kill", "terminate", "freeze")

#: The stories of a round have ended by then, or nearly.
FAULT_MS_MAX = 1_200
#: Longer than a lease lasts, with the sweep that finds it.
FREEZE_S = LEASE_TTL_S + 1.5
#: PostgreSQL answers nothing for this long, and closes nothing.
HANG_S = 3.0
#: Long enough for `/ready` to notice.
DOWN_S = 4.0
CONNECT_TIMEOUT_S = 3
BACKENDS: LiteralString = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
CUT: LiteralString = f"SELECT pg_terminate_backend(pid)::int FROM ({BACKENDS}) AS others"


class Storm:
    """Brings faults upon a fleet, and notes in its `unrest` when. All chance comes from `chance`."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.counts: Counter[str] = Counter()
        #: One outage at a time: a server that another fault is starting cannot be stopped.
        self._outage = asyncio.Lock()
        self._redis = asyncio.Lock()

    async def strike(self, fault: str, chance: random.Random) -> None:
        """Bring the fault at an instant within FAULT_MS_MAX; returns when it is over."""
        await asyncio.sleep(chance.randint(0, FAULT_MS_MAX) / 1000)
        self.counts[fault] += 1
        # Those of processes alone disturb no other process.
        with contextlib.nullcontext() if fault in OF_PROCESSES else self._fleet.unrest.disturbed():
            await FAULTS[fault](self, chance)

    async def kill(self, chance: random.Random) -> None:
        """SIGKILL to a worker, or now and then to an API."""
        self._victim(chance).send(signal.SIGKILL)

    async def terminate(self, chance: random.Random) -> None:
        """SIGTERM, in the middle of whatever it does."""
        self._victim(chance).send(signal.SIGTERM)

    async def freeze(self, chance: random.Random) -> None:
        """A worker stands still for longer than its lease lasts."""
        pid = chance.choice(self._fleet.workers).pid
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            try:
                await asyncio.sleep(FREEZE_S)
            finally:
                os.kill(pid, signal.SIGCONT)

    async def crash_database(self, chance: random.Random) -> None:
        """PostgreSQL stops with `immediate` and starts again."""
        await self._fall("stopped", chance)

    async def kill_postmaster(self, chance: random.Random) -> None:
        """SIGKILL to PostgreSQL's first process; its backends end by themselves."""
        await self._fall("killed", chance)

    async def cut_sessions(self, chance: random.Random) -> None:
        """Every session of the fleet is ended by the server, as a proxy that restarts does."""
        await asyncio.to_thread(self._on_backends, CUT)

    async def hang_backends(self, chance: random.Random) -> None:
        """Every session stands still with its connection open."""
        pids = await asyncio.to_thread(self._on_backends, BACKENDS)
        _signal_all(pids, signal.SIGSTOP)
        try:
            await asyncio.sleep(HANG_S)
        finally:
            _signal_all(pids, signal.SIGCONT)

    async def kill_redis(self, chance: random.Random) -> None:
        """Redis dies with all that it knew, and starts empty."""
        async with self._redis:
            await asyncio.to_thread(self._fleet.redis.restart)

    async def empty_redis(self, chance: random.Random) -> None:
        """Redis forgets everything, and keeps its connections."""
        async with self._redis:
            await asyncio.to_thread(self._fleet.redis.flush)

    def _victim(self, chance: random.Random) -> Mortal:
        return chance.choice(self._fleet.apis if chance.random() < 0.25 else self._fleet.workers)

    async def _fall(self, way: Literal["stopped", "killed"], chance: random.Random) -> None:
        async with self._outage:
            await asyncio.to_thread(self._fleet.stop_database, way)
            # Away from here on: until it has stopped, and once it starts, it may still or already answer.
            with self._fleet.unrest.away():
                await asyncio.sleep(chance.choice([0.0, 0.0, DOWN_S]))
            await asyncio.to_thread(self._fleet.postgres.start)

    def _on_backends(self, statement: LiteralString) -> list[int]:
        """The first column for every session of the fleet; none while PostgreSQL is away for another reason."""
        try:
            with psycopg.connect(self._fleet.database_dsn, connect_timeout=CONNECT_TIMEOUT_S) as connection:
                return [int(row[0]) for row in connection.execute(statement)]
        except psycopg.OperationalError:
            return []


def _signal_all(pids: list[int], by: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, by)


FAULTS: dict[str, Callable[[Storm, random.Random], Awaitable[None]]] = {
    "kill": Storm.kill,
    "terminate": Storm.terminate,
    "freeze": Storm.freeze,
    "crash_database": Storm.crash_database,
    "kill_postmaster": Storm.kill_postmaster,
    "cut_sessions": Storm.cut_sessions,
    "hang_backends": Storm.hang_backends,
    "kill_redis": Storm.kill_redis,
    "empty_redis": Storm.empty_redis,
}
