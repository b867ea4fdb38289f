"""Trials: a run at which workers died again and again is alone in its worker until it has got further.

So a death says which run it was by, and the runs beside a killer are not condemned with it.
"""

import time
from collections.abc import Callable, Collection

from threadmark.state import Claim, Database, claim_suspect, look_for_suspects
from threadmark.workers.fleet.lease import Lease
from threadmark.workers.turn.turn import Turn

__all__ = ["Trials"]


#: The worker that holds least may not know the suspect's agent: after so many seconds others become free as well.
PATIENCE_S = 10.0


class Trials:
    """Of one worker. `is_idle`: whether the process has nothing under way, turns and tasks.

    It looks for suspects every `look_s` seconds, and at once after a death.
    """

    def __init__(
        self,
        database: Database,
        lease: Lease,
        worker_id: str,
        routes: Collection[str],
        is_idle: Callable[[], bool],
        *,
        look_s: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._lease = lease
        self._worker_id = worker_id
        self._routes = routes
        self._is_idle = is_idle
        self._look_s = look_s
        self._monotonic = monotonic
        self._look_due = 0.0
        self._waits_since: float | None = None
        self._turn: Turn | None = None
        self._claiming = False
        self._draining = False

    @property
    def allow_claims(self) -> bool:
        """Whether the worker may take anything: no trial is on, and none waits for this worker to become free."""
        return not (self._is_on or self._claiming or self._draining)

    @property
    def _is_on(self) -> bool:
        return self._turn is not None and not self._turn.has_progressed

    def look(self) -> None:
        """There may be new suspects."""
        self._look_due = 0.0

    async def claim(self) -> Claim | None:
        """Take a suspect if the worker is idle; if it is not, become idle where it is the one to do so."""
        now = self._monotonic()
        if self._is_on or (now < self._look_due and not (self._draining and self._is_idle())):
            return None
        self._look_due = now + self._look_s
        waits, is_freest = await self._database.read(
            lambda connection: look_for_suspects(connection, self._worker_id, self._routes)
        )
        if not waits:
            self._waits_since, self._draining = None, False
            return None
        self._waits_since = now if self._waits_since is None else self._waits_since
        if not self._is_idle():
            self._draining = is_freest or now - self._waits_since > PATIENCE_S
            return None
        # From here on until the claim is back nothing else is taken.
        self._claiming = True
        try:
            return await self._database.write(
                self._lease.sparing(lambda connection: claim_suspect(connection, self._worker_id, self._routes))
            )
        finally:
            self._claiming = self._draining = False

    def begun(self, turn: Turn) -> None:
        """The turn of the suspect."""
        self._turn = turn

    def ended(self, turn: Turn) -> None:
        """A turn has ended; if it was the suspect's, the worker is free again."""
        if self._turn is turn:
            self._turn = None
