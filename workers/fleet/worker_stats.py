"""What a worker counts about itself, reported with every heartbeat: its claims, and how late its event loop is."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from threadmark.state import RATE_WINDOW_S, Claim, LoopSeen
from threadmark.workers.supervisor import LoopReport

__all__ = ["WorkerStats"]


class WorkerStats:
    """Counts in the event loop, read by the thread of the lease; `monotonic` in seconds."""

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        loops: Callable[[], Sequence[LoopReport]] = tuple,
    ) -> None:
        self._monotonic = monotonic
        self._loops = loops
        self._lock = threading.Lock()
        self._recent: deque[tuple[float, int]] = deque()
        self._claim_count = 0
        self._orphan_count = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked_at: float | None = None
        self._lag_s = 0.0

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """The loop whose lag is measured."""
        self._loop = loop

    def claimed(self, claims: Sequence[Claim], *, orphan_count: int) -> None:
        """These were claimed, so many of them from the dead."""
        if not claims:
            return
        with self._lock:
            self._claim_count += len(claims)
            self._orphan_count += orphan_count
            self._recent.append((self._monotonic(), len(claims)))
            self._forget()

    def counts(self) -> dict[str, int | str]:
        """The counts of a heartbeat, by the names that `beat` takes; called once for each."""
        with self._lock:
            self._forget()
            counts: dict[str, int | str] = {
                "claim_count": self._claim_count,
                "orphan_count": self._orphan_count,
                "recent_claim_count": sum(count for _, count in self._recent),
            }
        loops = [
            LoopSeen(name=each.name, age_s=each.completed_s, error_count=each.error_count, is_stale=each.is_stale)
            for each in self._loops()
        ]
        spelled = msgspec.json.encode(loops).decode()
        return counts | {"loop_lag_us": round(self._lag() * 1_000_000), "loops": spelled}

    def _forget(self) -> None:
        too_old = self._monotonic() - RATE_WINDOW_S
        while self._recent and self._recent[0][0] <= too_old:
            self._recent.popleft()

    def _lag(self) -> float:
        """How long the loop took to answer the last call, or has been leaving it unanswered."""
        asked_at = self._asked_at
        if asked_at is not None:
            return self._monotonic() - asked_at
        if self._loop is not None:
            self._asked_at = self._monotonic()
            self._loop.call_soon_threadsafe(self._answered)
        return self._lag_s

    def _answered(self) -> None:
        if self._asked_at is not None:
            self._lag_s, self._asked_at = self._monotonic() - self._asked_at, None
