"""Server processes of the tests' own: on a free port, awaited until they answer, gone when the tests are gone."""

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

import pytest

LAUNCH = Path(__file__).with_name("launch.py")
PORTS = range(15_000, 28_000)
PORT_TRIES_MAX = 100
START_TRIES_MAX = 3
READY_S_MAX = 60.0
END_S_MAX = 20.0
POLL_S = 0.02
LOG_TAIL_CHARS = 4_000


class DidNotStart(Exception):
    """A private server ended, or stayed silent, before it answered; the message ends with its log."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The user and group a server runs as."""

    uid: int
    gid: int

    @classmethod
    def own(cls) -> "Identity":
        """The user who runs the tests."""
        return cls(os.geteuid(), os.getegid())


def unavailable(reason: str) -> NoReturn:
    """Skip the asking test, or fail it in CI, where a skipped test would be an unseen hole."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def free_port() -> int:
    """A loopback port nobody listens on.

    Never one the kernel lends to outgoing connections: while a server is down, a client that keeps knocking at such a
    port can be lent that very port, connect to itself, and keep the server from coming back.
    """
    for _ in range(PORT_TRIES_MAX):
        port = random.choice(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise DidNotStart(f"no free port in {PORTS} after {PORT_TRIES_MAX} tries")


def launched(command: Sequence[str], identity: Identity, death_signal: signal.Signals) -> list[str]:
    """The command line that runs `command` as `identity` and ends it by `death_signal` when this process dies."""
    tie = [os.getpid(), int(death_signal), identity.uid, identity.gid]
    return [sys.executable, "-I", "-S", str(LAUNCH), *map(str, tie), *command]


class Daemon:
    """One running server process.

    On Linux it dies with the thread that started it, so start it from the main thread, as fixtures do.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        log: Path,
        identity: Identity | None = None,
        death_signal: signal.Signals = signal.SIGKILL,
    ) -> None:
        self._log = log
        with log.open("ab") as output:
            # A session of its own: Ctrl-C in the terminal is for the tests, which then end their servers in order.
            self._process = subprocess.Popen(
                launched(command, identity or Identity.own(), death_signal),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=log.parent,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._process.pid

    def is_running(self) -> bool:
        """Whether the process is there, ready or not."""
        return self._process.poll() is None

    def await_ready(self, is_ready: Callable[[], bool]) -> None:
        """Ask `is_ready` until it says yes. Raises DidNotStart, with the process gone."""
        deadline = time.monotonic() + READY_S_MAX
        while not is_ready():
            if time.monotonic() > deadline:
                self.end(signal.SIGKILL)
            # Not a sleep: a server that gives up is noticed at once.
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._process.wait(timeout=POLL_S)
                raise DidNotStart(f"the server ended with {code} before it answered:\n{self._log_tail()}")

    def end(self, by: signal.Signals) -> int:
        """Send the signal and wait until the process is gone; its exit code. One that lingers is killed."""
        if self.is_running():
            self._process.send_signal(by)
        try:
            self._process.wait(timeout=END_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        return self._process.returncode

    def _log_tail(self) -> str:
        return self._log.read_text(errors="replace")[-LOG_TAIL_CHARS:]


class PrivateServer(ABC):
    """A folder, a port, and at most one process that serves them; a context manager that leaves none of the three."""

    #: What ends the process when nobody needs an orderly end.
    death_signal = signal.SIGKILL

    def __init__(self, name: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"threadmark-{name}-"))
        self.port = 0
        self._daemon: Daemon | None = None

    @property
    def pid(self) -> int:
        """Process id of the running server."""
        assert self._daemon is not None, f"{self.folder.name} is not running"
        return self._daemon.pid

    def is_running(self) -> bool:
        """Whether the process is there."""
        return self._daemon is not None and self._daemon.is_running()

    def start(self) -> None:
        """Start it unless it runs, and return when it answers. The port is the same every time.

        Raises DidNotStart, with the server's log, when it ends or stays silent instead.
        """
        if not self.is_running():
            self._daemon = self.spawn()
            self._daemon.await_ready(self.answers)

    def close(self) -> None:
        """End the process and remove the folder."""
        self.end(self.death_signal)
        shutil.rmtree(self.folder, ignore_errors=True)

    def end(self, by: signal.Signals) -> int | None:
        """Send the signal and return when the process is gone, with its exit code; None where none runs."""
        daemon, self._daemon = self._daemon, None
        return None if daemon is None else daemon.end(by)

    @abstractmethod
    def spawn(self) -> Daemon:
        """Start the process on `port`, without waiting for it."""

    @abstractmethod
    def answers(self) -> bool:
        """Whether a client is served."""

    def __enter__(self) -> Self:
        """Start on a free port; another one is tried when somebody takes it between the look and the start."""
        for tries_left in reversed(range(START_TRIES_MAX)):
            self.port = free_port()
            try:
                self.start()
                break
            except DidNotStart:
                if not tries_left:
                    self.close()
                    raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
