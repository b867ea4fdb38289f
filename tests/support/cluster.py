"""A deployment of several processes in a test: one PostgreSQL, one Redis, APIs and workers that share both.

Effects go to one file, whichever worker has them: the data directory is shared, as the volume of a deployment is.
"""

import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from tests.support.daemon import Daemon, PrivateServer
from tests.support.service import Service
from threadmark.app.schema import migrate_all
from threadmark.examples.refund.effects import EFFECTS_FILE
from threadmark.workers.settings.settings import Settings

__all__ = ["Cluster", "WorkerProcess"]

READY = "The worker is ready."


class WorkerProcess(PrivateServer):
    """One `threadmark worker`."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        super().__init__("worker")
        self.environment = dict(environment)

    def begin(self) -> None:
        """Start the process without waiting for it; `start` then waits."""
        self._daemon = self.spawn()

    def start(self) -> None:
        """Start it unless it was, and return when it is ready."""
        if not self.is_running():
            self.begin()
        assert self._daemon is not None
        self._daemon.await_ready(self.answers)

    @property
    def log(self) -> str:
        """What the process, and those before it, have written so far."""
        path = self.folder / "server.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def kill(self) -> None:
        """SIGKILL; returns when the process is gone."""
        self.end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM; returns when the process is gone."""
        self.end(signal.SIGTERM)

    def freeze(self) -> None:
        """SIGSTOP: as a host that hangs."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def spawn(self) -> Daemon:
        """Start the process."""
        (self.folder / "server.log").unlink(missing_ok=True)
        command = ["/usr/bin/env", *(f"{name}={value}" for name, value in self.environment.items())]
        command += [sys.executable, "-W", "error::ResourceWarning", "-m", "threadmark.app.cli", "worker"]
        return Daemon(command, log=self.folder / "server.log", death_signal=self.death_signal)

    def answers(self) -> bool:
        """Whether it has said that it is ready."""
        return READY in self.log


class Cluster:
    """Starts processes over one state database and one Redis (None: without). Use it in a `with`."""

    def __init__(self, postgres_url: str, redis_url: str | None, **settings: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="threadmark-cluster-"))
        self.workers: list[WorkerProcess] = []
        self.services: list[Service] = []
        self._stack = ExitStack()
        self.environment = {
            "THREADMARK_STATE_DATABASE_URL": postgres_url,
            "THREADMARK_DATA_DIR": str(self.folder),
            "PYTHONPATH": str(Path(__file__).parents[2]),
            **({} if redis_url is None else {"THREADMARK_REDIS_URL": redis_url}),
            **settings,
        }

    def serve(self, **settings: str) -> Service:
        """One more API process, once it answers."""
        service = self._stack.enter_context(Service({**self.environment, **settings}))
        self.services.append(service)
        return service

    def work(self, count: int = 1, **settings: str) -> list[WorkerProcess]:
        """Worker processes that are starting; `start` waits for one."""
        begun = [WorkerProcess({**self.environment, **settings}) for _ in range(count)]
        for each in begun:
            self._stack.callback(each.close)
            each.begin()
        self.workers += begun
        return begun

    def await_all(self) -> None:
        """Return when every worker is ready; those that a test has ended are started again."""
        for each in self.workers:
            each.start()

    @property
    def key(self) -> str:
        """The key that the first API process made."""
        return (self.folder / "admin.key").read_text().strip()

    def effects(self) -> list[dict[str, Any]]:
        """What has reached the outside world, in order."""
        path = self.folder / EFFECTS_FILE
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def __enter__(self) -> Self:
        migrate_all(Settings.from_environment(self.environment))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        shutil.rmtree(self.folder, ignore_errors=True)
