"""Token buckets: how often something may happen, per name.

A bucket holds `burst` tokens and wins `per_s` of them a second, up to `burst`. Time is an argument (seconds of a clock
that never steps back). Nothing here awaits, so within one event loop taking a token is atomic.
"""

from collections import OrderedDict
from collections.abc import Hashable

__all__ = ["BUCKET_COUNT_MAX", "Buckets"]

#: Names remembered at once. The one touched longest ago is forgotten first: it has won back the most.
BUCKET_COUNT_MAX = 10_000


class Buckets:
    """Many buckets of one size, by name."""

    def __init__(self, *, per_s: float, burst: int, count_max: int = BUCKET_COUNT_MAX) -> None:
        if per_s <= 0 or burst < 1 or count_max < 1:
            raise ValueError(f"a bucket of {burst} tokens that wins {per_s} a second, {count_max} of them")
        self._per_s = per_s
        self._burst = burst
        self._count_max = count_max
        self._levels: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def take(self, name: Hashable, now_s: float) -> float:
        """Take a token: 0.0 if there was one, else the seconds until there is one (and none was taken)."""
        level = self._level(name, now_s)
        if level < 1:
            return (1 - level) / self._per_s
        self._levels[name] = (level - 1, now_s)
        self._levels.move_to_end(name)
        if len(self._levels) > self._count_max:
            self._levels.popitem(last=False)
        return 0.0

    def wait_s(self, name: Hashable, now_s: float) -> float:
        """The seconds until there is a token: 0.0 if there is one. Takes nothing."""
        return max(0.0, (1 - self._level(name, now_s)) / self._per_s)

    def _level(self, name: Hashable, now_s: float) -> float:
        level, at_s = self._levels.get(name, (float(self._burst), now_s))
        return min(self._burst, level + max(0.0, now_s - at_s) * self._per_s)
