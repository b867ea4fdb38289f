"""The tests' side of the launcher: servers that it forks, many at a time if need be."""

import asyncio
import itertools
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.daemon import Identity, launched

__all__ = ["Child", "Launcher"]

ROOT = Path(__file__).parents[2]
START_S_MAX = 60.0
END_S_MAX = 20.0


@dataclass(frozen=True, slots=True)
class Child:
    """A server process; `ended` brings its exit code (negative: the signal that ended it)."""

    pid: int
    ended: asyncio.Future[int]


class Launcher:
    """The process that forks servers (see `launcher`). Use it in a `with`, on the main thread; they die with it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._reader = threading.Thread(target=self._read_reports, name="launcher", daemon=True)
        self._is_ready: Future[int] = Future()
        self._names = map(str, itertools.count(1))
        self._begun: dict[str, Future[int]] = {}
        self._ended: dict[str, Future[int]] = {}

    async def launch(self, arguments: list[str], environment: Mapping[str, str], log: Path) -> Child:
        """Start `threadmark` with these arguments; it writes to `log`."""
        process, name = self._running, next(self._names)
        self._begun[name], self._ended[name] = Future(), Future()
        order = {"name": name, "arguments": arguments, "environment": dict(environment), "log": str(log)}
        assert process.stdin is not None
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()
        return Child(await asyncio.wrap_future(self._begun[name]), asyncio.wrap_future(self._ended[name]))

    def _read_reports(self) -> None:
        stdout = self._running.stdout
        assert stdout is not None
        for line in stdout:
            report: dict[str, Any] = json.loads(line)
            if "pid" in report:
                self._begun[report["name"]].set_result(report["pid"])
            elif "code" in report:
                self._ended[report["name"]].set_result(report["code"])
            else:
                self._is_ready.set_result(report["ready"])

    @property
    def _running(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None, "enter the launcher before you use it"
        return self._process

    def __enter__(self) -> Self:
        command = launched([sys.executable, "-m", "tests.crash.launcher"], Identity.own(), signal.SIGKILL)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, start_new_session=True
        )
        self._reader.start()
        self._is_ready.result(START_S_MAX)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        process = self._running
        # It ends with its input.
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(END_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._reader.join()
        assert process.stdout is not None
        process.stdout.close()
