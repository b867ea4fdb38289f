"""Trials: a run or task at which workers died again and again is alone in its worker until it has progressed.

So a death has one cause, and the runs and tasks beside a killer are not quarantined with it.
"""

import time
from collections.abc import Callable, Collection
from typing import Protocol

from sqlalchemy import Connection

from threadmark.state import Claim, Database, claim_suspect, look_for_suspects
from threadmark.state.tasks.task_claims import claim_suspect_task, has_suspect_task
from threadmark.state.tasks.tasks import Task
from threadmark.workers.fleet.lease import Lease

__all__ = ["Suspect", "Trials"]


#: The worker that holds least may not know the suspect's agent: after so many seconds others become free as well.
PATIENCE_S = 10.0


class Suspect(Protocol):
    """A turn or an attempt at a task that is on trial."""

    @property
    def has_progressed(self) -> bool:
        """Whether it got further than the attempts before, so that the trial is over."""
        ...


class Trials:
    """Of one worker. `is_idle`: whether the process has neither turns nor tasks under way; `on_end` follows each trial.

    It looks for suspects every `look_s` seconds, and at once after a death: among runs of these `routes` and tasks of
    these `kinds`, which are what the worker can do.
    """

    def __init__(
        self,
        database: Database,
        lease: Lease,
        worker_id: str,
        is_idle: Callable[[], bool],
        on_end: Callable[[], None],
        *,
        routes: Collection[str],
        kinds: Collection[str],
        look_s: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._lease = lease
        self._worker_id = worker_id
        self._routes = routes
        self._kinds = kinds
        self._on_end = on_end
        self._is_idle = is_idle
        self._look_s = look_s
        self._monotonic = monotonic
        self._look_due = 0.0
        self._waits_since: float | None = None
        self._tried: Suspect | None = None
        self._claiming = False
        self._draining = False

    @property
    def allow_claims(self) -> bool:
        """Whether the worker may take anything: no trial is on, and none waits for this worker to become free."""
        return not (self._is_on or self._claiming or self._draining)

    @property
    def _is_on(self) -> bool:
        return self._tried is not None and not self._tried.has_progressed

    def look(self) -> None:
        """There may be new suspects."""
        self._look_due = 0.0

    async def claim(self) -> Claim | Task | None:
        """Take a suspect if the worker is idle; if it is not, become idle where it is the one to do so."""
        now = self._monotonic()
        if self._is_on or (now < self._look_due and not (self._draining and self._is_idle())):
            return None
        self._look_due = now + self._look_s
        waits, is_freest = await self._database.read(self._look_for_suspects)
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
            return await self._database.write(self._lease.sparing(self._claim_a_suspect))
        finally:
            self._claiming = self._draining = False

    def begun(self, tried: Suspect) -> None:
        """The suspect that was claimed is under way."""
        self._tried = tried

    def ended(self, ended: Suspect) -> None:
        """A turn or a task has ended; if it was the suspect, the worker is free again."""
        if self._tried is ended:
            self._tried = None
            self._on_end()

    def _look_for_suspects(self, connection: Connection) -> tuple[bool, bool]:
        waits, is_freest = look_for_suspects(connection, self._worker_id, self._routes)
        return waits or has_suspect_task(connection, self._kinds), is_freest

    def _claim_a_suspect(self, connection: Connection) -> Claim | Task | None:
        claimed = claim_suspect(connection, self._worker_id, self._routes)
        return claimed or claim_suspect_task(connection, self._worker_id, self._kinds)
