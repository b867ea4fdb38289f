"""A deployment that is killed into: APIs and workers over one PostgreSQL and one Redis, each started again when gone.

All processes are forked by the launcher, so a start costs no more than its work; effects go to one file.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import tempfile
import time
from collections import ChainMap
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import httpx2

from tests.crash.client import Client
from tests.crash.doomed import Death
from tests.crash.launching import Launcher
from tests.crash.supervised_process import Mortal
from tests.crash.unrest import Unrest
from tests.support.daemon import free_port
from tests.support.servers import PrivatePostgres, PrivateRedis
from tests.support.waiting import wait_until
from threadmark.app.schema import migrate_all
from threadmark.examples.refund.effects import EFFECTS_FILE
from threadmark.workers.settings.settings import Settings

__all__ = ["LEASE_TTL_S", "SWEEP_S", "Fleet"]

ROOT = Path(__file__).parents[2]
READY_S_MAX = 60.0
PROBE_S_MAX = 5.0
#: Short, so that a round in which PostgreSQL falls too, and leases alone tell who is dead, does not last.
LEASE_TTL_S = 3.0
HEARTBEAT_S = 0.5
SWEEP_S = 0.25


class Fleet:
    """Use it as `async with fleet.alive() as client`.

    With `apart` each worker has a data directory of its own, as on a machine of its own: it sees no lock file of the
    others. Effects go to the one file all the same.
    """

    def __init__(
        self,
        launcher: Launcher,
        postgres: PrivatePostgres,
        redis: PrivateRedis,
        *,
        database_url: str,
        worker_count: int = 2,
        api_count: int = 1,
        apart: bool = False,
        **settings: str,
    ) -> None:
        self.postgres, self.redis = postgres, redis
        self.folder = Path(tempfile.mkdtemp(prefix="threadmark-fleet-"))
        self.deaths: list[Death] = []
        self.unrest = Unrest()
        self._environment = {
            "THREADMARK_STATE_DATABASE_URL": database_url,
            "THREADMARK_REDIS_URL": redis.url,
            "THREADMARK_DATA_DIR": str(self.folder),
            "THREADMARK_SERVE_WORKER": "no",
            "THREADMARK_LEASE_TTL_S": str(LEASE_TTL_S),
            "THREADMARK_HEARTBEAT_S": str(HEARTBEAT_S),
            "THREADMARK_SWEEP_S": str(SWEEP_S),
            "PYTHONPATH": str(ROOT),
            **settings,
        }
        self._ports = [free_port() for _ in range(api_count)]
        self.apis = [self._mortal(launcher, f"api-{port}", self._serve(port)) for port in self._ports]
        names = [f"worker-{number}" for number in range(worker_count)]
        self.workers = [
            self._mortal(launcher, each, ["worker"], **(self._machine(each) if apart else {})) for each in names
        ]

    def _mortal(self, launcher: Launcher, name: str, arguments: list[str], **settings: str) -> Mortal:
        # A view and not a copy: `move_to` changes the database of all processes, which read it at their next start.
        environment = ChainMap(settings, self._environment)
        return Mortal(launcher, arguments, environment, self.folder / f"{name}.log", self._note)

    def _machine(self, name: str) -> dict[str, str]:
        """The settings of a worker that shares databases and effects with the others, and nothing else."""
        folder = self.folder / f"machine-of-{name}"
        folder.mkdir(mode=0o700)
        (folder / EFFECTS_FILE).symlink_to(self.folder / EFFECTS_FILE)
        return {
            "THREADMARK_DATA_DIR": str(folder),
            "THREADMARK_MEMORY_DATABASE_URL": f"sqlite:///{self.folder / 'memory.db'}",
        }

    def _serve(self, port: int) -> list[str]:
        return ["serve", "--host", "127.0.0.1", "--port", str(port), "--data-dir", str(self.folder)]

    def _note(self, code: int, at_s: float) -> None:
        self.deaths.append(Death(code, at_s, len(self.effects())))

    @property
    def urls(self) -> list[str]:
        """The root of each API process."""
        return [f"http://127.0.0.1:{port}" for port in self._ports]

    @property
    def key(self) -> str:
        """The key that the first start made."""
        return (self.folder / "admin.key").read_text().strip()

    def effects(self) -> list[dict[str, Any]]:
        """What has reached the outside world, in order."""
        path = self.folder / EFFECTS_FILE
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def ports(self) -> list[int]:
        """Of each API process."""
        return list(self._ports)

    @property
    def database_dsn(self) -> str:
        """The address of the database as libpq reads it."""
        return self._environment["THREADMARK_STATE_DATABASE_URL"].replace("+psycopg", "")

    def break_database(self) -> None:
        """Stop PostgreSQL as a crash does, and start it again; transactions under way are cut off."""
        with self.unrest.disturbed():
            self.stop_database()
            self.postgres.start()

    def stop_database(self, way: Literal["stopped", "killed"] = "stopped") -> None:
        """End PostgreSQL as a crash does: by its own immediate shutdown, or by SIGKILL to its first process."""
        if way == "killed":
            self.postgres.kill()
        else:
            self.postgres.stop("immediate")
        # A transaction that was cut off counts as a death too: what was on disk by then may not be done again.
        self.deaths.append(Death(0, time.time(), len(self.effects())))

    def holder(self, worker_id: str) -> Mortal | None:
        """The worker that has this id, if it still runs."""
        return next((each for each in self.workers if f"-{each.pid}-" in worker_id), None)

    @contextlib.asynccontextmanager
    async def alive(self) -> AsyncIterator[Client]:
        """Everybody running, and started again as soon as it dies; a client of the first API. Nothing is left."""
        try:
            async with self.running() as client:
                yield client
        finally:
            self.close()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Client]:
        """The same; what was written stays for the next time."""
        try:
            migrate_all(Settings.from_environment(self._environment))
            for each in [*self.apis, *self.workers]:
                await each.begin()
            await self.answers()
            async with Client(self.urls[0], self.key) as client:
                yield client
        finally:
            await asyncio.gather(*(each.end() for each in [*self.apis, *self.workers]))

    def move_to(self, database_url: str) -> None:
        """Be the same deployment over another database when it runs again."""
        self._environment["THREADMARK_STATE_DATABASE_URL"] = database_url

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    async def answers(self) -> None:
        """Return when every API answers."""
        async with httpx2.AsyncClient(timeout=PROBE_S_MAX, verify=False) as http:
            for url in self.urls:

                async def answers(url: str = url) -> bool:
                    with contextlib.suppress(httpx2.TransportError):
                        return (await http.get(f"{url}/ok")).status_code == httpx2.codes.OK
                    return False

                await wait_until(answers, description=f"{url} to answer", timeout_s=READY_S_MAX)

    async def thaw(self) -> None:
        """Let frozen processes go on."""
        for each in [*self.apis, *self.workers]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each.pid, signal.SIGCONT)
