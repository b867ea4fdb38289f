"""When the databases of a fleet were disturbed, and when PostgreSQL was away: what its answers are judged by."""

import contextlib
import math
import time
from collections.abc import Iterator

__all__ = ["CALM_S", "Unrest"]

#: A disturbance is over for every loop after its longest back-off, a round, and what a loaded machine adds.
CALM_S = 10.0

_Span = list[float]


class Unrest:
    """Spans of time, in epoch seconds; one that lasts still has no end."""

    def __init__(self) -> None:
        self._disturbances: list[_Span] = []
        self._outages: list[_Span] = []

    @contextlib.contextmanager
    def disturbed(self) -> Iterator[None]:
        """PostgreSQL or Redis is being stopped, cut off or made to hang, for as long as the block lasts."""
        with _noted(self._disturbances):
            yield

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """PostgreSQL answers no request, for as long as the block lasts."""
        with _noted(self._outages):
            yield

    def was_away_throughout(self, from_s: float, to_s: float) -> bool:
        """Whether PostgreSQL answered no request from the one instant to the other."""
        return any(began <= from_s and to_s <= ended for began, ended in self._outages)

    def was_calm(self, from_s: float, to_s: float) -> bool:
        """Whether nothing was disturbed from the one instant to the other, nor for CALM_S before."""
        return not any(began <= to_s and from_s - CALM_S <= ended for began, ended in self._disturbances)


@contextlib.contextmanager
def _noted(spans: list[_Span]) -> Iterator[None]:
    span = [time.time(), math.inf]
    spans.append(span)
    try:
        yield
    finally:
        span[1] = time.time()
