"""Housekeeping of a worker: removes now and then what nobody needs any more.

It is a loop of its own: in the sweep it would stand between a death and the claim of what the dead held.
"""

import asyncio

from threadmark.workers.fleet.services import Services
from threadmark.workers.supervisor import Loop, Supervisor, stale_after_s
from threadmark.workers.tasks.cleanup import tidy

__all__ = ["Housekeeping"]

#: A worker that starts has other things to do first: taking over what the one before it left (seconds).
FIRST_S = 5.0
EVERY_S = 30.0


class Housekeeping:
    """Runs in the event loop of a worker, from `start` to `stop`."""

    def __init__(self, services: Services, supervisor: Supervisor) -> None:
        self._services = services
        self._supervisor = supervisor
        self._loops: list[Loop] = []

    def start(self) -> None:
        """Begin, after a while."""
        stale_s = stale_after_s(EVERY_S)
        self._loops.append(self._supervisor.start("housekeeping", self._keep, stale_s=stale_s, delay_s_max=EVERY_S))

    async def stop(self) -> None:
        """Do no more of it."""
        await self._supervisor.stop(*self._loops)

    async def _keep(self, loop: Loop) -> None:
        await asyncio.sleep(FIRST_S)
        while True:
            await tidy(self._services)
            loop.completed()
            await asyncio.sleep(EVERY_S)
