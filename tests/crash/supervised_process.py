"""One process of a fleet: forked by the launcher, and started again whenever it is gone."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.crash.launching import Child, Launcher

__all__ = ["Mortal"]

#: How a process of a fleet may end: stopped or killed. One that is still starting has no handler for SIGTERM.
EXPECTED_CODES = (0, -signal.SIGKILL, -signal.SIGTERM)
LOG_TAIL_CHARS = 3_000


class Mortal:
    """`threadmark` with these arguments. `on_end` is called at every exit with the exit code and the epoch second."""

    def __init__(
        self,
        launcher: Launcher,
        arguments: list[str],
        environment: Mapping[str, str],
        log: Path,
        on_end: Callable[[int, float], None],
    ) -> None:
        self._launcher = launcher
        self._arguments = arguments
        self._environment = environment
        self._log = log
        self._on_end = on_end
        self._child: Child | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._is_kept = False

    @property
    def pid(self) -> int:
        """Of the process that runs now."""
        assert self._child is not None, "it was never started"
        return self._child.pid

    def has_ended(self, pid: int) -> bool:
        """Whether the process of this id runs no more."""
        return self.pid != pid or (self._child is not None and self._child.ended.done())

    @property
    def log(self) -> str:
        """All that its processes have written."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    async def begin(self) -> None:
        """Start it, and from now on start it again whenever it ends."""
        self._is_kept = True
        await self._launch()
        self._keeping = asyncio.create_task(self._keep())

    def send(self, by: signal.Signals) -> None:
        """Send the signal, without waiting for what comes of it."""
        if self._child is not None and not self._child.ended.done():
            # It may have died this very moment.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child.pid, by)

    async def end(self) -> None:
        """Kill it, and leave it dead."""
        self._is_kept = False
        if self._keeping is not None:
            # A frozen process dies of SIGKILL too.
            self.send(signal.SIGKILL)
            await self._keeping

    def _is_over(self) -> bool:
        return not self._is_kept

    async def _launch(self) -> None:
        self._child = await self._launcher.launch(self._arguments, self._environment, self._log)

    async def _keep(self) -> None:
        while True:
            assert self._child is not None
            code = await self._child.ended
            self._on_end(code, time.time())
            assert code in EXPECTED_CODES, f"{self._arguments[0]} ended with {code}:\n{self.log[-LOG_TAIL_CHARS:]}"
            if self._is_over():
                return
            await self._launch()
            if self._is_over():
                self.send(signal.SIGKILL)
