"""Readiness: one probe for all who ask, so that a public route costs the database one write a second at most."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

__all__ = ["Readiness"]

KEEP_S = 1.0
TIMEOUT_S = 5.0
_LOG = logging.getLogger("threadmark.http")


class Readiness:
    """Remembers the last probe for KEEP_S; those who ask at the same time share one. `what` names it in the log."""

    def __init__(
        self,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        timeout_s: float = TIMEOUT_S,
        what: str = "the database",
    ) -> None:
        self._timeout_s = timeout_s
        self._what = what
        self._monotonic = monotonic
        self._asked_at = float("-inf")
        self._answer = False
        self._lock = asyncio.Lock()

    async def ask(self, probe: Callable[[], Awaitable[bool]]) -> bool:
        """Whether the probe succeeded within its time, now or less than KEEP_S ago."""
        async with self._lock:
            if self._monotonic() - self._asked_at >= KEEP_S:
                self._answer = await self._probe(probe)
                self._asked_at = self._monotonic()
            return self._answer

    async def _probe(self, probe: Callable[[], Awaitable[bool]]) -> bool:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await probe()
        except Exception:
            _LOG.warning("%s does not answer", self._what, exc_info=True)
            return False
