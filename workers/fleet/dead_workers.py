"""The death watch of a worker: finds workers whose process is gone, and ends their leases.

It is a loop of its own with a thread of its own: a sweep may wait for a busy database or a full pool of threads, and a
death has to be found within a second all the same.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from threadmark.workers.fleet.lease import Lease
from threadmark.workers.supervisor import Loop, Supervisor, stale_after_s

__all__ = ["DeathWatch"]

#: How soon to look again while a grace is not over (seconds).
UNSURE_S = 0.1
_LOG = logging.getLogger("threadmark.worker")


class DeathWatch:
    """Looks every `probe_s` seconds, from `start` to `stop`; `on_death` is called in the event loop."""

    def __init__(self, lease: Lease, supervisor: Supervisor, *, probe_s: float, on_death: Callable[[], None]) -> None:
        self._lease = lease
        self._supervisor = supervisor
        self._probe_s = probe_s
        self._on_death = on_death
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="threadmark-deaths")
        self._loops: list[Loop] = []

    def start(self) -> None:
        """Begin to look, at once."""
        stale_s = stale_after_s(self._probe_s)
        self._loops.append(
            self._supervisor.start("death watch", self._watch, stale_s=stale_s, delay_s_max=self._probe_s)
        )

    async def stop(self) -> None:
        """Look no more."""
        await self._supervisor.stop(*self._loops)
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _watch(self, loop: Loop) -> None:
        home = asyncio.get_running_loop()
        while True:
            dead = await home.run_in_executor(self._thread, self._lease.reap_dead_workers)
            if dead:
                _LOG.info("workers found dead: %s", ", ".join(dead))
                self._on_death()
            loop.completed()
            await asyncio.sleep(min(self._probe_s, UNSURE_S) if self._lease.is_unsure else self._probe_s)
