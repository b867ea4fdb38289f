"""A deployment of several processes in a test: one PostgreSQL, one Redis, APIs and workers that share both.

Effects go to one file, whichever worker has them: the data directory is shared, as the volume of a deployment is.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from examples.refund.effects import EFFECTS_FILE
from tests.daemon import Daemon, PrivateServer
from tests.service import Service

__all__ = ["Cluster", "WorkerProcess"]

MIGRATE_S_MAX = 60.0
READY = "The worker is ready."
ARQ_READY = "Starting worker for 1 functions: take_turn"


class WorkerProcess(PrivateServer):
    """One worker process: `threadmark worker`, or arq's own program where `command` says so."""

    def __init__(self, environment: Mapping[str, str], command: tuple[str, ...] = ("-m", "app.cli", "worker")) -> None:
        super().__init__("worker")
        self._environment = dict(environment)
        self._command = command

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
        command = ["/usr/bin/env", *(f"{name}={value}" for name, value in self._environment.items())]
        command += [sys.executable, "-W", "error::ResourceWarning", *self._command]
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
            "PYTHONPATH": str(Path(__file__).parents[1]),
            **({} if redis_url is None else {"THREADMARK_REDIS_URL": redis_url}),
            **settings,
        }

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """A command of `threadmark`, to its end."""
        return subprocess.run(
            [sys.executable, "-m", "app.cli", *arguments],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=MIGRATE_S_MAX,
            check=True,
        )

    def serve(self, **settings: str) -> Service:
        """One more API process, once it answers."""
        service = self._stack.enter_context(Service({**self.environment, **settings}))
        self.services.append(service)
        return service

    def work(self, *command: str, **settings: str) -> WorkerProcess:
        """One more worker process, once it is ready."""
        worker = WorkerProcess({**self.environment, **settings}, *([command] if command else []))
        self.workers.append(self._stack.enter_context(worker))
        return worker

    @property
    def key(self) -> str:
        """The key that the first API process made."""
        return (self.folder / "admin.key").read_text().strip()

    def effects(self) -> list[dict[str, Any]]:
        """What has reached the outside world, in order."""
        path = self.folder / EFFECTS_FILE
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def __enter__(self) -> Self:
        self.run("migrate")
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
