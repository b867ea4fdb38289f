"""What a turn waits for: that one of its steps ends, that something stirs outside, or that its time is up.

One waiter for the whole turn instead of `asyncio.wait` for each step, which makes a callback for each future it is
given and a timer for each call.
"""

import asyncio
import logging
from collections.abc import Collection, Coroutine, Sequence
from typing import Any

from threadmark.state import Entry

__all__ = ["ABANDON_S", "Running", "StepWaiter", "abandon"]

#: How long a cancelled effect may clean up before the turn goes on without it.
ABANDON_S = 5.0
_LOG = logging.getLogger("threadmark.turn")

Running = asyncio.Task[Sequence[Entry]]
#: A timer is reset when it would fire this much too late (seconds).
_LATE_S = 0.01


class StepWaiter:
    """One turn's waiter."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waker: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.came = False  #: a notice came, and the turn has not looked yet

    def begin(self, step: Coroutine[Any, Any, Sequence[Entry]]) -> Running:
        """Begin a step; its end wakes the turn."""
        task = self._loop.create_task(step)
        task.add_done_callback(self._wake)
        return task

    def wake(self) -> None:
        """Something stirred outside."""
        self.came = True
        self._wake()

    async def next_ended(self, running: Collection[Running], time_left_s: float) -> set[Running]:
        """The steps that ended; none when something stirred, or the time is up."""
        ended = {task for task in running if task.done()}
        if ended or self.came or time_left_s <= 0:
            return ended
        self._set_timer(time_left_s)
        self._waker = self._loop.create_future()
        try:
            await self._waker
        finally:
            self._waker = None
        return {task for task in running if task.done()}

    def close(self) -> None:
        """The turn is over: no timer or notice wakes it any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self, time_left_s: float) -> None:
        when = self._loop.time() + time_left_s
        if self._timer is not None:
            if self._timer.when() <= when + _LATE_S:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._wake()

    def _wake(self, _ended: object = None) -> None:
        if self._waker is not None and not self._waker.done():
            self._waker.set_result(None)


async def abandon(running: Collection[asyncio.Task[Any]]) -> None:
    """Cancel what still runs, and give it a moment to clean up."""
    if not running:
        return
    for task in running:
        task.cancel()
    _, stubborn = await asyncio.wait(running, timeout=ABANDON_S)
    for task in stubborn:
        _LOG.warning("a step swallowed its cancellation and was left behind: %r", task.get_coro())
