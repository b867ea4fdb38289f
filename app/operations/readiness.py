"""Readiness: one probe for all who ask, so that a public route costs the database one write a second at most."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from threadmark.db import Condition

__all__ = ["Readiness"]

KEEP_S = 1.0
TIMEOUT_S = 5.0
_LOG = logging.getLogger("threadmark.http")


def _none() -> None:
    """Nothing is known of the matter."""


class Readiness:
    """Remembers the last probe for KEEP_S; concurrent requests share one. `what` names it in the log."""

    def __init__(
        self,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        timeout_s: float = TIMEOUT_S,
        what: str = "the state database",
    ) -> None:
        self._timeout_s = timeout_s
        self._what = what
        self._monotonic = monotonic
        self._asked_at = float("-inf")
        self._answer = False
        self._condition: Condition | None = None
        self._lock = asyncio.Lock()

    @property
    def reason(self) -> str | None:
        """Why the last probe failed, a sentence; None if it succeeded."""
        return None if self._answer else self._sentence()

    async def ask(
        self, probe: Callable[[], Awaitable[bool]], condition: Callable[[], Condition | None] = _none
    ) -> bool:
        """Whether the probe succeeded within its time, now or less than KEEP_S ago.

        `condition` is asked what is the matter with a database that did not answer in time.
        """
        async with self._lock:
            if self._monotonic() - self._asked_at >= KEEP_S:
                self._answer = await self._probe(probe, condition)
                self._asked_at = self._monotonic()
            return self._answer

    async def _probe(self, probe: Callable[[], Awaitable[bool]], condition: Callable[[], Condition | None]) -> bool:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await probe()
        except Exception as error:
            self._condition = getattr(error, "condition", None) or condition()
            _LOG.warning("not ready: %s", self._sentence(), exc_info=True)
            return False

    def _sentence(self) -> str:
        return f"{self._what} {(self._condition or Condition.AWAY).sentence}"
