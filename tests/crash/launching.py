"""The tests' side of the launcher: servers that it forks, many at a time if need be."""

import asyncio
import itertools
import json
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.daemon import Identity, launched

__all__ = ["Child", "Launcher"]

ROOT = Path(__file__).parents[2]
LAUNCH_S_MAX = 60.0
END_S_MAX = 20.0


@dataclass(frozen=True, slots=True)
class Child:
    """A server process; `ended` brings its exit code (negative: the signal that ended it)."""

    pid: int
    ended: asyncio.Future[int]


class Launcher:
    """The process that forks servers (see `launcher`). Use it in an `async with`; the servers die with it."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._names = map(str, itertools.count(1))
        self._begun: dict[str, asyncio.Future[int]] = {}
        self._ended: dict[str, asyncio.Future[int]] = {}

    async def launch(self, arguments: list[str], environment: Mapping[str, str], log: Path) -> Child:
        """Start `threadmark` with these arguments; it writes to `log`."""
        assert self._process is not None
        assert self._process.stdin is not None
        name, loop = next(self._names), asyncio.get_running_loop()
        self._begun[name], self._ended[name] = loop.create_future(), loop.create_future()
        order = {"name": name, "arguments": arguments, "environment": dict(environment), "log": str(log)}
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        await self._process.stdin.drain()
        return Child(await self._begun[name], self._ended[name])

    async def _listen(self, stdout: asyncio.StreamReader) -> None:
        async for line in stdout:
            heard: dict[str, Any] = json.loads(line)
            if "pid" in heard:
                self._begun[heard["name"]].set_result(heard["pid"])
            else:
                self._ended[heard["name"]].set_result(heard["code"])

    async def __aenter__(self) -> Self:
        command = launched([sys.executable, "-m", "tests.crash.launcher"], Identity.own(), signal.SIGKILL)
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, cwd=ROOT, start_new_session=True
        )
        assert self._process.stdout is not None
        async with asyncio.timeout(LAUNCH_S_MAX):
            assert await self._process.stdout.readline(), "the launcher does not start"
        self._listening = asyncio.create_task(self._listen(self._process.stdout))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._listening is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(END_S_MAX):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._listening
