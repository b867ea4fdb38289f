"""Work in a thread whose caller leaves in the middle of it: how many of its steps come after that."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.support.waiting import wait_until
from threadmark.db.execution.pools import Pool

__all__ = ["HeldSteps", "abandon"]

WAIT_S = 60.0


class HeldSteps:
    """Counts the steps of work that calls `take`, and holds the work in its `nth` (from 1) until `release`."""

    def __init__(self, nth: int) -> None:
        self._nth = nth
        self._is_free = threading.Event()
        self.count = 0
        self.is_held = threading.Event()

    def take(self) -> None:
        """Count one step."""
        self.count += 1
        if self.count == self._nth:
            self.is_held.set()
            assert self._is_free.wait(WAIT_S)

    def release(self) -> None:
        """Let the work go on."""
        self._is_free.set()


async def abandon(work: Coroutine[Any, Any, object], steps: HeldSteps, pool: Pool) -> None:
    """Cancel the work where `steps` holds it, let its thread go on, and return when the pool's threads are free."""
    calling = asyncio.create_task(work)
    try:
        await wait_until(steps.is_held.is_set, description="the step that is held", timeout_s=WAIT_S)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
    finally:
        steps.release()
    await wait_until(lambda: not pool._running.total(), description="the threads to be free", timeout_s=WAIT_S)
