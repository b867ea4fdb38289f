"""A real server that dies as planned and comes back on the same port and data directory, and who restarts it."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx2

from tests.crash.client import Client
from tests.crash.launching import Child, Launcher
from tests.crash.plan import PLAN_VARIABLE, Plan
from tests.support.daemon import free_port
from threadmark.examples.refund.effects import EFFECTS_FILE

__all__ = ["Death", "DoomedServer"]

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


class DoomedServer:
    """One `threadmark serve` after the other, on one port, over one data directory.

    Enter it, then `start`, or let `kept_alive` start it again whenever it is gone.
    """

    def __init__(self, launcher: Launcher, environment: Mapping[str, str] | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="threadmark-doomed-"))
        self.port = free_port()
        self.deaths: list[Death] = []
        self.ready_at_s: list[float] = []
        self.plans: deque[Plan] = deque()  #: how those die that `kept_alive` starts, one after the other
        self._environment = dict(environment or {})
        self._launcher = launcher
        self._kept = asyncio.Event()
        self._child: Child | None = None

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
        async with httpx2.AsyncClient(base_url=self.url, timeout=PROBE_S_MAX, verify=False) as client:
            response = await client.get("/info", headers={"x-api-key": key})
        return response.status_code == httpx2.codes.OK

    def plan(self, plan: Plan | None) -> None:
        """Decide how the server dies or fails, running or started later; None lets it live."""
        if plan is None:
            self._plan_file.unlink(missing_ok=True)
            return
        draft = self.folder / "plan.new"
        draft.write_text(str(plan))
        draft.replace(self._plan_file)

    @property
    def has_plan(self) -> bool:
        """Whether a plan is there that has not struck."""
        return self._plan_file.exists()

    async def start(self) -> bool:
        """Start the server; True when it answers, False when it died before."""
        serve = ["serve", "--host", "127.0.0.1", "--port", str(self.port), "--data-dir", str(self.data_dir)]
        environment = {PLAN_VARIABLE: str(self._plan_file), **self._environment}
        self._child = await self._launcher.launch(serve, environment, self.folder / "server.log")
        return await self._answers()

    async def end(self, by: signal.Signals = signal.SIGKILL) -> Death:
        """Send the signal, and return when the process is gone."""
        self.send(by)
        return await self.gone()

    async def gone(self) -> Death:
        """How it ended, once it has."""
        if self._child is not None:
            child = self._child
            code = await asyncio.shield(child.ended)
            if self._child is child:
                self._child = None
                self.deaths.append(Death(code, time.time(), len(self.effects())))
        return self.deaths[-1]

    @contextlib.asynccontextmanager
    async def kept_alive(self) -> AsyncIterator[Client]:
        """Have it running, and started again as soon as it dies, with the next of `plans`; a client to talk to it."""
        assert await self.start(), f"the server does not start:\n{self.log}"
        self._kept.set()
        keeper = asyncio.create_task(self._keep())
        try:
            async with Client(self.url, self.key) as client:
                yield client
        finally:
            self._kept.clear()
            self.send(signal.SIGKILL)
            await keeper

    async def _keep(self) -> None:
        while True:
            death = await self.gone()
            if not self._kept.is_set():
                return
            # SIGTERM finds no handler yet in a server that is still starting: it ends as by a kill.
            expected = (0, -signal.SIGKILL, -signal.SIGTERM)
            assert death.code in expected, f"the server ended with {death.code}:\n{self.log}"
            self.plan(self.plans.popleft() if self.plans else None)
            await self.start()
            if not self._kept.is_set():
                self.send(signal.SIGKILL)

    def send(self, by: signal.Signals) -> None:
        """Send the signal, without waiting for what comes of it."""
        if self._child is not None and not self._child.ended.done():
            # It may have died this very moment.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child.pid, by)

    async def _answers(self) -> bool:
        assert self._child is not None
        ended, deadline = self._child.ended, time.monotonic() + START_S_MAX
        async with httpx2.AsyncClient(base_url=self.url, timeout=PROBE_S_MAX, verify=False) as client:
            while not ended.done():
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
        if self._child is not None:
            async with asyncio.timeout(END_S_MAX):
                await self.end()
        shutil.rmtree(self.folder, ignore_errors=True)
