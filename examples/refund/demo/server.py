"""The server of the demonstration: a real `threadmark serve` over a data directory of its own."""

import json
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx2

from threadmark.examples.refund.demo.screen import Screen
from threadmark.examples.refund.effects import EFFECTS_FILE

__all__ = ["DemoFailed", "DemoServer"]

START_S_MAX = 60.0
END_S_MAX = 15.0
PROBE_S_MAX = 5.0
LOG_TAIL_CHARS = 2_000


class DemoFailed(Exception):
    """The demonstration cannot go on; the message says why."""


class DemoServer:
    """Started, killed and started again on one port, over one data directory; gone, with both, after the `with`."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._folder = Path(tempfile.mkdtemp(prefix="threadmark-demo-"))
        self._process: subprocess.Popen[bytes] | None = None
        self.data_dir = self._folder / "data"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = int(probe.getsockname()[1])

    @property
    def url(self) -> str:
        """The root of the API."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """Process id of the running server."""
        if self._process is None:
            raise DemoFailed("the server does not run")
        return self._process.pid

    @property
    def key(self) -> str:
        """The key that the first start made."""
        return (self.data_dir / "admin.key").read_text().strip()

    def effects(self) -> list[dict[str, Any]]:
        """What has reached the outside world, in order."""
        path = self.data_dir / EFFECTS_FILE
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def start(self) -> None:
        """Start it and return when it answers."""
        self._process = self._spawn()
        self._screen.wait("The server starts", self._answers, s_max=START_S_MAX)
        self._screen.tell(f"It serves {self.url} as process {self.pid}.")

    def kill(self) -> int:
        """SIGKILL: no handler runs, nothing is flushed. The process id that is gone."""
        process, self._process = self._process, None
        if process is None:
            raise DemoFailed("the server does not run")
        process.kill()
        process.wait()
        return process.pid

    def _spawn(self) -> subprocess.Popen[bytes]:
        command: Sequence[str] = [sys.executable, "-m", "threadmark.app.cli", "serve", "--host", "127.0.0.1"]
        command = [*command, "--port", str(self._port), "--data-dir", str(self.data_dir)]
        with self._log.open("ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

    def _answers(self) -> bool:
        if self._process is not None and (code := self._process.poll()) is not None:
            tail = self._log.read_text(errors="replace")[-LOG_TAIL_CHARS:]
            raise DemoFailed(f"the server ended with {code} before it answered:\n{tail}")
        try:
            return httpx2.get(f"{self.url}/ok", timeout=PROBE_S_MAX).is_success
        except httpx2.TransportError:
            return False

    @property
    def _log(self) -> Path:
        return self._folder / "server.log"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(END_S_MAX)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
