"""When a lock that nobody holds any more means that its holder died. Pure.

A session can be cut while its worker lives: a pooler restarts, a proxy or a NAT resets. So a lock may be taken again
within a grace, and locks that fall together are a cut: then leases alone decide.
"""

from collections.abc import Collection
from itertools import pairwise

__all__ = ["GRACE_S", "TOGETHER_S", "FallenLocks"]

#: How long a holder has to take its lock again, counted from when the database answers (seconds).
GRACE_S = 0.4
#: Locks that fall within this time of each other fell together (seconds). At least the grace: a lock is judged only
#: once every other that fell with it has been seen.
TOGETHER_S = 0.4


class FallenLocks:
    """What one observer has seen of the locks of others. Instants are monotonic seconds."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._in_cut: set[str] = set()

    @property
    def has_some(self) -> bool:
        """Whether a lock is down whose holder has not been judged: look again soon."""
        return len(self._since) > len(self._in_cut)

    def unanswered(self) -> None:
        """The database did not answer: a grace begins when it does."""
        self._since = {each: at for each, at in self._since.items() if each in self._in_cut}

    def judge(self, missing: Collection[str], now_s: float, own_fell_at_s: float | None = None) -> list[str]:
        """Of those whose lock is `missing` now the dead ones. `own_fell_at_s`: when the observer lost its own session.

        Whoever fell in a cut is never judged again until its lock has been seen: its lease decides.
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
        """It was buried."""
        self._since.pop(worker_id, None)
        self._in_cut.discard(worker_id)
