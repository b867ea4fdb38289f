"""A worker's sign of life: what others of its machine go by while SQLite's lock keeps it from renewing its lease."""

import time

from threadmark.state import Liveness

__all__ = ["SignOfLife"]


class SignOfLife:
    """Lets others count on a worker for `ttl_s` seconds from each beat.

    A beat that comes too late is none: others may have taken what the worker holds. Then only a lease that was renewed
    begins it again.
    """

    def __init__(self, liveness: Liveness, worker_id: str, *, ttl_s: float) -> None:
        self._liveness = liveness
        self._worker_id = worker_id
        self._ttl_s = ttl_s
        self._until = 0.0

    @property
    def left_s(self) -> float:
        """For how long the others count on this worker (seconds); 0 or less: they do not."""
        return self._until - time.monotonic()

    def begin(self) -> None:
        """Beat, whatever was before: the lease has just been taken or renewed."""
        self._beat(time.monotonic())

    def beat(self) -> None:
        """Go on, unless the last beat was too long ago."""
        now = time.monotonic()
        if now < self._until:
            self._beat(now)

    def _beat(self, now: float) -> None:
        until = now + self._ttl_s
        if self._liveness.beat(self._worker_id, until):
            self._until = until
