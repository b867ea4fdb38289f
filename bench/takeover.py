"""How long a run stands still when its worker is killed, as a client sees it.

Two APIs and three workers are processes of their own over a PostgreSQL and a Redis. A supervisor starts a killed worker
again, at once and at the full price of a start. Runs call tools that take a while, so that every kill meets some in the
middle. What counts is the time from SIGKILL to the next turn of the same run in its journal, as HTTP gives it, for
every run that the dead worker held.

    python -m bench.takeover --kills 25
    python -m bench.takeover --kills 25 --load 4    beside four processes that do nothing but compute
    python -m bench.takeover --kills 25 --apart     no worker sees the lock files of the others
"""

import argparse
import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack

import httpx2
import psycopg

from bench.parts.takeover_figures import Kill, Takeover, report, takeovers
from tests.support.cluster import Cluster, WorkerProcess
from tests.support.servers import PrivatePostgres, PrivateRedis

KILL_COUNT_MAX = 500
LOAD_COUNT_MAX = 32
API_COUNT, WORKER_COUNT, THREAD_COUNT = 2, 3, 12
LEASE_TTL_S, HEARTBEAT_S = 4, 1
#: A run is this many calls, of this many milliseconds each.
CALL_COUNT, CALL_MS = 12, 1_000
#: Between two kills (seconds): some are close together, so that a worker that is starting is all that is left but one.
PAUSE_S = (0.5, 4.0)
WATCH_S, POLL_S, LOCK_POLL_S = 0.02, 0.5, 0.01
#: Bounds on a run of the bench: until two workers are ready, until a lock falls, until the last run has ended.
READY_S_MAX, LOCK_S_MAX, SETTLE_S_MAX = 60.0, 30.0, 120.0
_LOCKS = "SELECT classid, objid FROM pg_locks WHERE locktype = 'advisory' AND granted"


class Supervisor:
    """Starts a worker again as soon as it is gone."""

    def __init__(self, workers: list[WorkerProcess]) -> None:
        self.workers = workers

    def ready(self) -> list[WorkerProcess]:
        """The workers that have said that they are."""
        return [each for each in self.workers if each.is_running() and each.answers()]

    async def keep(self) -> None:
        """Until it is cancelled."""
        while True:
            for each in self.workers:
                if not each.is_running():
                    each.begin()
            await asyncio.sleep(WATCH_S)


class Driver:
    """A client of the deployment: keeps every thread busy, through one API and the other in turn."""

    def __init__(self, cluster: Cluster) -> None:
        self._https = [
            httpx2.AsyncClient(base_url=each.url, headers={"x-api-key": cluster.key}, timeout=60.0, verify=False)
            for each in cluster.services
        ]
        self._stopping = False
        self.statuses: dict[str, int] = {}

    async def keep_busy(self, number: int) -> str:
        """One run after the other on a thread of its own, until `stop`; the thread's id once the last has ended."""
        http = self._https[number % len(self._https)]
        thread_id: str = (await http.post("/threads", json={})).raise_for_status().json()["thread_id"]
        order = 0
        while not self._stopping:
            calls = [
                f'call lookup_order {{"order_id": "{number}-{order + each}", "delay_ms": {CALL_MS}}}'
                for each in range(CALL_COUNT)
            ]
            order += CALL_COUNT
            body = {"assistant_id": "refund", "input": {"messages": [{"role": "user", "content": "\n".join(calls)}]}}
            made = (await http.post(f"/threads/{thread_id}/runs", json=body)).raise_for_status().json()
            status = await self._ended(http, f"/threads/{thread_id}/runs/{made['run_id']}")
            self.statuses[status] = self.statuses.get(status, 0) + 1
        return thread_id

    def stop(self) -> None:
        """Ask for no more runs."""
        self._stopping = True

    async def journal(self, thread_id: str) -> list[dict[str, object]]:
        """Every entry of a thread."""
        entries: list[dict[str, object]] = []
        after: int | None = 0
        while after is not None:
            path, parameters = f"/threads/{thread_id}/journal", {"after": after, "limit": 100}
            page = (await self._https[0].get(path, params=parameters)).raise_for_status().json()
            entries += page["items"]
            after = page["next"]
        return entries

    async def close(self) -> None:
        """Let the connections go."""
        for each in self._https:
            await each.aclose()

    async def _ended(self, http: httpx2.AsyncClient, path: str) -> str:
        while True:
            status: str = (await http.get(path)).raise_for_status().json()["status"]
            if status not in ("pending", "running"):
                return status
            await asyncio.sleep(POLL_S)


class Killer:
    """Kills workers that are ready, and measures how soon their locks are down for a process that polls."""

    def __init__(self, supervisor: Supervisor, database_dsn: str, chance: random.Random) -> None:
        self._supervisor = supervisor
        self._dsn = database_dsn
        self._chance = chance

    async def kill(self) -> Kill:
        """Kill one of the ready workers. At least one other is ready too."""
        await _until(lambda: len(self._supervisor.ready()) > 1, READY_S_MAX, "two workers that are ready")
        ready = self._supervisor.ready()
        victim = self._chance.choice(ready)
        async with await psycopg.AsyncConnection.connect(self._dsn, autocommit=True) as session:
            held = await _locks(session)
            pid, at_s = victim.pid, time.time()
            os.kill(pid, signal.SIGKILL)
            # The lease's row goes when another worker has reaped the dead one; the lock is down before.
            async with asyncio.timeout(LOCK_S_MAX):
                while True:
                    if not held <= await _locks(session):
                        break
                    await asyncio.sleep(LOCK_POLL_S)
        return Kill(pid=pid, at_s=at_s, lock_down_s=time.time() - at_s, survivor_count=len(ready) - 1)


async def _locks(session: psycopg.AsyncConnection[tuple[object, ...]]) -> set[tuple[object, ...]]:
    return set(await (await session.execute(_LOCKS)).fetchall())


async def _until(holds: Callable[[], bool], limit_s: float, what: str) -> None:
    deadline = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {limit_s:g} s for {what}")
        await asyncio.sleep(WATCH_S)


@contextlib.contextmanager
def burdened(count: int) -> Iterator[None]:
    """That many processes that compute, for as long as the block lasts."""
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for each in burners:
            each.kill()
            each.wait()


@contextlib.asynccontextmanager
async def beside(work: Awaitable[None]) -> AsyncIterator[None]:
    """The work goes on for as long as the block lasts."""
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def measure(cluster: Cluster, database_dsn: str, kill_count: int, seed: int) -> tuple[list[Kill], list[Takeover]]:
    """Kill so many workers; every takeover that this made necessary."""
    chance, supervisor, driver = random.Random(seed), Supervisor(cluster.workers), Driver(cluster)
    killer = Killer(supervisor, database_dsn, chance)
    kills: list[Kill] = []
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(driver.close)
        await stack.enter_async_context(beside(supervisor.keep()))
        busy = [asyncio.create_task(driver.keep_busy(number)) for number in range(THREAD_COUNT)]
        for _ in range(kill_count):
            await asyncio.sleep(chance.uniform(*PAUSE_S))
            kills.append(await killer.kill())
        driver.stop()
        async with asyncio.timeout(SETTLE_S_MAX):
            threads = await asyncio.gather(*busy)
        journals = [await driver.journal(each) for each in threads]
        print(f"runs by how they ended: {driver.statuses}")
    return kills, takeovers(kills, journals)


def main() -> int:
    """Measure and print. Returns 1 where a run was never taken up again."""
    parser = argparse.ArgumentParser(description="How long runs stand still when their worker is killed.")
    parser.add_argument("--kills", type=int, default=25, help="workers to kill (%(default)s)")
    parser.add_argument("--load", type=int, default=0, help="processes that compute beside it (%(default)s)")
    parser.add_argument("--apart", action="store_true", help="as if each worker had a machine of its own")
    parser.add_argument("--seed", type=int, default=1, help="of the pauses and the victims (%(default)s)")
    chosen = parser.parse_args()
    kill_count, load_count = min(chosen.kills, KILL_COUNT_MAX), min(chosen.load, LOAD_COUNT_MAX)
    with ExitStack() as stack:
        postgres = stack.enter_context(PrivatePostgres(settings={"max_connections": "200"}))
        redis = stack.enter_context(PrivateRedis())
        url = stack.enter_context(postgres.fresh_database())
        settings = {
            "THREADMARK_SERVE_WORKER": "no",
            "THREADMARK_LEASE_TTL_S": str(LEASE_TTL_S),
            "THREADMARK_HEARTBEAT_S": str(HEARTBEAT_S),
            "THREADMARK_RATE_PER_S": "100000",
            "THREADMARK_RATE_BURST": "100000",
        }
        cluster = stack.enter_context(Cluster(url, redis.url, **settings))
        for number in range(WORKER_COUNT):
            # Lock files are of one machine: with a folder of its own each worker sees of the others what is far away.
            folder = cluster.folder / f"machine-{number}" if chosen.apart else cluster.folder
            cluster.work(1, THREADMARK_DATA_DIR=str(folder))
        for _ in range(API_COUNT):
            cluster.serve()
        cluster.await_all()
        stack.enter_context(burdened(load_count))
        load_before = os.getloadavg()[0]
        began_s = time.monotonic()
        kills, found = asyncio.run(measure(cluster, url.replace("+psycopg", ""), kill_count, chosen.seed))
        print(
            f"{len(kills)} kills in {time.monotonic() - began_s:.0f} s on {os.cpu_count()} cores; load of the machine "
            f"{load_before:.1f} before, {os.getloadavg()[0]:.1f} after"
        )
        print(report(kills, found))
    return int(any(each.lag_s is None for each in found))


if __name__ == "__main__":
    sys.exit(main())
