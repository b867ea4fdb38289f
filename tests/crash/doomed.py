"""A real server that dies as planned and comes back on the same port and data directory, and who restarts it."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx2

from examples.refund.effects import EFFECTS_FILE
from tests.crash.launcher import PLAN_VARIABLE
from tests.crash.plan import KillPlan
from tests.daemon import Identity, free_port, launched
from tests.waiting import wait_until

__all__ = ["Death", "DoomedServer", "Launcher"]

ROOT = Path(__file__).parents[2]
LAUNCH_S_MAX = 60.0
START_S_MAX = 30.0
END_S_MAX = 20.0
PROBE_S_MAX = 5.0
POLL_S = 0.01
LOG_TAIL_CHARS = 3_000


@dataclass(frozen=True, slots=True)
class Death:
    """An end of the server: how, when at the latest (epoch seconds), and the lines of the effects file by then."""

    code: int
    noticed_at_s: float
    line_count: int


class Launcher:
    """The process that forks servers (see `launcher`), one after the other."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None

    async def launch(self, order: Mapping[str, Any]) -> int:
        """Start a server; its process id."""
        process = self._running
        assert process.stdin is not None
        process.stdin.write(json.dumps(order).encode() + b"\n")
        await process.stdin.drain()
        return (await self._hear())["pid"]

    async def await_end(self) -> int:
        """The exit code of the server that was launched last; negative: the signal that ended it."""
        return (await self._hear())["code"]

    async def _hear(self) -> dict[str, int]:
        stdout = self._running.stdout
        assert stdout is not None
        line = await stdout.readline()
        assert line, "the launcher is gone"
        heard: dict[str, int] = json.loads(line)
        return heard

    @property
    def _running(self) -> asyncio.subprocess.Process:
        assert self._process is not None, "enter the launcher before you use it"
        return self._process

    async def __aenter__(self) -> Self:
        command = launched([sys.executable, "-m", "tests.crash.launcher"], Identity.own(), signal.SIGKILL)
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, cwd=ROOT, start_new_session=True
        )
        async with asyncio.timeout(LAUNCH_S_MAX):
            await self._hear()
        return self

    async def __aexit__(self, *_: object) -> None:
        process = self._running
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(END_S_MAX):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


class DoomedServer:
    """One `threadmark serve` after the other, on one port, over one data directory.

    Enter it, then `start`, or let `kept_alive` start it again whenever it is gone.
    """

    def __init__(self, launcher: Launcher, environment: Mapping[str, str] | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="threadmark-doomed-"))
        self.port = free_port()
        self.deaths: list[Death] = []
        self.ready_at_s: list[float] = []
        self.pid: int | None = None
        self._environment = dict(environment or {})
        self._launcher = launcher
        self._ended: asyncio.Task[int] | None = None

    @property
    def data_dir(self) -> Path:
        """Where the databases, `admin.key` and the effects file are."""
        return self.folder / "data"

    @property
    def url(self) -> str:
        """The root of the API."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def key(self) -> str:
        """The key that the first start made."""
        return (self.data_dir / "admin.key").read_text().strip()

    @property
    def log(self) -> str:
        """The end of what the servers have written."""
        path = self.folder / "server.log"
        return path.read_text(errors="replace")[-LOG_TAIL_CHARS:] if path.exists() else ""

    def effects(self) -> list[dict[str, Any]]:
        """What has reached the outside world, in order."""
        path = self.data_dir / EFFECTS_FILE
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    async def opens(self, key: str) -> bool:
        """Whether the key opens the API."""
        async with httpx2.AsyncClient(base_url=self.url, timeout=PROBE_S_MAX) as client:
            response = await client.get("/info", headers={"x-api-key": key})
        return response.status_code == httpx2.codes.OK

    def plan(self, plan: KillPlan | None) -> None:
        """Decide how the server dies, running or started later; None lets it live."""
        if plan is None:
            self._plan_file.unlink(missing_ok=True)
            return
        draft = self.folder / "plan.new"
        draft.write_text(str(plan))
        draft.replace(self._plan_file)

    async def start(self) -> bool:
        """Start the server; True when it answers, False when it died before."""
        order = {
            "arguments": ["serve", "--host", "127.0.0.1", "--port", str(self.port), "--data-dir", str(self.data_dir)],
            "environment": {PLAN_VARIABLE: str(self._plan_file), **self._environment},
            "log": str(self.folder / "server.log"),
        }
        self.pid = await self._launcher.launch(order)
        self._ended = asyncio.create_task(self._launcher.await_end())
        return await self._answers()

    async def end(self, by: signal.Signals = signal.SIGKILL) -> Death:
        """Send the signal, and return when the process is gone."""
        if self.pid is not None:
            os.kill(self.pid, by)
        return await self.gone()

    async def gone(self) -> Death:
        """How it ended, once it has."""
        assert self._ended is not None, "the server was never started"
        code = await asyncio.shield(self._ended)
        if not self.deaths or self.pid is not None:
            self.pid = None
            self.deaths.append(Death(code, time.time(), len(self.effects())))
        return self.deaths[-1]

    @contextlib.asynccontextmanager
    async def kept_alive(self) -> AsyncIterator[None]:
        """Have it running, and started again without a plan as soon as it dies."""
        await self.start()
        keeper = asyncio.create_task(self._keep())
        try:
            yield
        finally:
            keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeper

    async def _keep(self) -> None:
        while True:
            await self.gone()
            self.plan(None)
            await self.start()

    async def _answers(self) -> bool:
        assert self._ended is not None
        deadline = time.monotonic() + START_S_MAX
        async with httpx2.AsyncClient(base_url=self.url, timeout=PROBE_S_MAX) as client:
            while not self._ended.done():
                with contextlib.suppress(httpx2.TransportError):
                    if (await client.get("/ok")).status_code == httpx2.codes.OK:
                        self.ready_at_s.append(time.time())
                        return True
                assert time.monotonic() < deadline, f"the server does not answer:\n{self.log}"
                await asyncio.sleep(POLL_S)
        return False

    @property
    def _plan_file(self) -> Path:
        return self.folder / "plan"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.pid is not None:
            async with asyncio.timeout(END_S_MAX):
                await self.end()
        shutil.rmtree(self.folder, ignore_errors=True)


async def died(server: DoomedServer, count: int) -> None:
    """Return when the server has died that many times."""
    await wait_until(lambda: len(server.deaths) >= count, description=f"death {count} of the server")
