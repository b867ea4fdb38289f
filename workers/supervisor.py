"""The supervisor of a process's long-lived tasks: sweeps, probes, feeds, the indexer.

An error in one of them is logged, counted and backed off, and the task is started again: an outage ends none. A task
that ends without being asked to leaves a process that looks alive and does half of its work, so the process ends then.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from threadmark.state import is_outage

__all__ = ["Loop", "LoopReport", "Supervisor", "stale_after_s"]

#: A loop that missed this many intervals is stale, but never sooner than a busy machine may hold it up (seconds).
STALE_INTERVAL_COUNT = 5
STALE_S_MIN = 5.0
FIRST_DELAY_S = 0.1
DELAY_S_MAX = 5.0
#: How long one cancellation is given: some clients swallow one that comes while they connect (seconds).
CANCEL_S = 0.1
#: How long a task may take to end in all; then the process goes on without it (seconds).
STOP_S_MAX = 10.0
#: How often an error is logged again while it stays the same (seconds).
SAY_EVERY_S = 30.0
_LOG = logging.getLogger("threadmark.supervisor")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopReport:
    """What a loop has done so far. `completed_s`: seconds since its last round ended well; None: none has yet."""

    name: str
    completed_s: float | None
    round_count: int
    error_count: int
    is_stale: bool


def stale_after_s(interval_s: float) -> float:
    """After how many seconds without a round a loop is stale that has one every `interval_s`: a few intervals."""
    return max(STALE_S_MIN, STALE_INTERVAL_COUNT * interval_s)


class Loop:
    """One long-lived task. Its body calls `completed` after each round; any thread may."""

    def __init__(
        self,
        name: str,
        monotonic: Callable[[], float],
        *,
        stale_s: float | None,
        delay_s_max: float = DELAY_S_MAX,
    ) -> None:
        self.name = name
        self._delay_s_max = delay_s_max
        self.round_count = 0
        self.error_count = 0
        self.failure_count = 0  #: errors since the last round that ended well
        self._monotonic = monotonic
        self._stale_s = stale_s
        self._began_at = monotonic()
        self._completed_at: float | None = None
        self._said, self._said_at = "", 0.0

    def completed(self) -> None:
        """A round ended well."""
        self._completed_at = self._monotonic()
        self.round_count += 1
        if self.failure_count:
            self.failure_count, self._said = 0, ""
            _LOG.warning("%s works again", self.name)

    def failed(self, error: BaseException) -> float:
        """A round ended with an error; seconds until it may be tried again."""
        self.error_count += 1
        self.failure_count += 1
        delay_s: float = min(self._delay_s_max, FIRST_DELAY_S * 2.0 ** min(self.failure_count - 1, 16))
        # Once, and not with every attempt for as long as an outage lasts.
        line, now = _line(error), self._monotonic()
        if line != self._said or now - self._said_at >= SAY_EVERY_S:
            # Where the database is away its driver's traceback says nothing that the line does not.
            trace = None if line == self._said or is_outage(error) else error
            self._said, self._said_at = line, now
            _LOG.error("%s failed and is tried again in %.1f s: %s", self.name, delay_s, line, exc_info=trace)
        return delay_s

    def report(self) -> LoopReport:
        """What it has done so far."""
        now, completed_at = self._monotonic(), self._completed_at
        since = self._began_at if completed_at is None else completed_at
        return LoopReport(
            name=self.name,
            completed_s=None if completed_at is None else now - completed_at,
            round_count=self.round_count,
            error_count=self.error_count,
            is_stale=self._stale_s is not None and now - since > self._stale_s,
        )


class Supervisor:
    """Runs the long-lived tasks of one process, in one event loop."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._loops: list[Loop] = []
        self._tasks: dict[Loop, asyncio.Task[None]] = {}
        self._stops: dict[Loop, asyncio.Event] = {}
        self._failed = asyncio.Event()
        self.failure: str | None = None

    def watch(self, name: str, *, stale_s: float | None = None) -> Loop:
        """A loop that runs elsewhere, in a thread: it reports its rounds, and calls `fail` when it ends unasked.

        A loop of which no round ended well for `stale_s` seconds makes the process unready; None: it waits for events
        that may not come.
        """
        return self._add(Loop(name, self._monotonic, stale_s=stale_s))

    def start(
        self,
        name: str,
        body: Callable[[Loop], Awaitable[None]],
        *,
        stale_s: float | None = None,
        delay_s_max: float = DELAY_S_MAX,
    ) -> Loop:
        """Run `body`, and again after every error, until `stop`. It may return only once it was asked to stop.

        Between two attempts pass at most `delay_s_max` seconds.
        """
        loop = self._add(Loop(name, self._monotonic, stale_s=stale_s, delay_s_max=delay_s_max))
        self._stops[loop] = asyncio.Event()
        task = asyncio.create_task(self._run(loop, body), name=name)
        self._tasks[loop] = task
        task.add_done_callback(lambda ended: self._ended(loop, ended))
        return loop

    def dismiss(self, *loops: Loop) -> None:
        """These may return from now on: they are about to be stopped."""
        for loop in loops:
            if loop in self._stops:
                self._stops[loop].set()

    async def stop(self, *loops: Loop, patience_s: float = 0.0) -> None:
        """End the loops: their bodies may return by themselves for `patience_s` seconds, and are cancelled then."""
        self.dismiss(*loops)
        pending = {self._tasks[loop] for loop in loops if loop in self._tasks}
        if patience_s and pending:
            _, pending = await asyncio.wait(pending, timeout=patience_s)
        deadline = self._monotonic() + STOP_S_MAX
        while pending and self._monotonic() < deadline:
            for each in pending:
                each.cancel()
            _, pending = await asyncio.wait(pending, timeout=CANCEL_S)
        for task in pending:
            _LOG.warning("%s does not end and is left behind", task.get_name())
        self.forget(*loops)
        for loop in loops:
            self._tasks.pop(loop, None)

    def forget(self, *loops: Loop) -> None:
        """These have ended as they were asked to: nothing is expected of them any more."""
        with self._lock:
            self._loops = [each for each in self._loops if each not in loops]

    def fail(self, name: str, home: asyncio.AbstractEventLoop | None = None) -> None:
        """The process has to end: `name` ended unasked. From another thread with the event loop that is `home`."""
        _LOG.critical("%s ended without being asked to: this process exits, for its supervisor to start it again", name)
        self.failure = self.failure or name
        if home is None:
            self._failed.set()
        else:
            home.call_soon_threadsafe(self._failed.set)

    async def failed(self) -> None:
        """Return when a loop ended unasked; `failure` names it."""
        await self._failed.wait()

    def reports(self) -> list[LoopReport]:
        """What each loop has done so far; callable from any thread."""
        with self._lock:
            loops = list(self._loops)
        return [each.report() for each in loops]

    def troubles(self) -> list[str]:
        """Why this process does less than it should, a sentence each; none when all is well."""
        found = [f"{self.failure} has ended"] if self.failure is not None else []
        for each in self.reports():
            if each.is_stale:
                age = "yet" if each.completed_s is None else f"for {each.completed_s:.0f} s"
                found.append(f"{each.name} has completed no round {age}")
        return found

    def _add(self, loop: Loop) -> Loop:
        with self._lock:
            self._loops.append(loop)
        return loop

    async def _run(self, loop: Loop, body: Callable[[Loop], Awaitable[None]]) -> None:
        stopping = self._stops[loop]
        while True:
            try:
                return await body(loop)
            except asyncio.CancelledError as error:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                # This task was not cancelled: something that it awaited was, which is an error like any other.
                delay_s = loop.failed(error)
            except Exception as error:
                delay_s = loop.failed(error)
            with suppress(TimeoutError):
                async with asyncio.timeout(delay_s):
                    await stopping.wait()
                return None

    def _ended(self, loop: Loop, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _LOG.error("%s ended", loop.name, exc_info=error)
        if not self._stops.pop(loop).is_set():
            self.fail(loop.name)


def _line(error: BaseException) -> str:
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
