"""Decides when a released liveness lock means that its holder died. Pure.

A session can break while its worker lives: a pooler restarts, or a proxy or a NAT resets the connection. A worker may
therefore take its lock again within a grace period. When several locks fall together, the network failed: then only
leases decide.
"""

from collections.abc import Collection
from itertools import pairwise

__all__ = ["GRACE_S", "TOGETHER_S", "FallenLocks"]

#: How long a holder has to take its lock again, counted from when the database answers (seconds).
GRACE_S = 0.4
#: Locks that fall within this time of each other fell together (seconds). At least the grace period: a lock is judged
#: only after every other lock that fell with it has been seen.
TOGETHER_S = 0.4


class FallenLocks:
    """What one observer has seen of other workers' locks. Instants are monotonic seconds."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._in_cut: set[str] = set()

    @property
    def has_some(self) -> bool:
        """Whether a fallen lock has not been judged yet; check again soon."""
        return len(self._since) > len(self._in_cut)

    def unanswered(self) -> None:
        """The database did not answer; the grace period begins when it does."""
        self._since = {each: at for each, at in self._since.items() if each in self._in_cut}

    def judge(self, missing: Collection[str], now_s: float, own_fell_at_s: float | None = None) -> list[str]:
        """The dead workers among those whose lock is `missing`. `own_fell_at_s`: when the observer lost its own
        session.

        A worker whose lock fell in a network failure is not judged again until its lock has been seen: its lease
        decides.
        """
        self._since = {each: self._since.get(each, now_s) for each in missing}
        self._in_cut &= self._since.keys()
        falls = sorted(self._since.items(), key=lambda fall: fall[1])
        for (one, at_s), (other, next_s) in pairwise(falls):
            if next_s - at_s <= TOGETHER_S:
                self._in_cut |= {one, other}
        if own_fell_at_s is not None:
            self._in_cut |= {each for each, at_s in falls if abs(at_s - own_fell_at_s) <= TOGETHER_S}
        return [each for each, at_s in falls if each not in self._in_cut and now_s - at_s >= GRACE_S]

    def forget(self, worker_id: str) -> None:
        """Drop a worker that was reaped."""
        self._since.pop(worker_id, None)
        self._in_cut.discard(worker_id)
