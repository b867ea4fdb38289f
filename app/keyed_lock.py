"""Keyed locks: requests to one thread pass one at a time, so that a hot thread does not block requests to others.

All of it would wait for the row of the thread in any case. Waiting for it in the queue of a writing connection, as a
hundred requests for one busy thread do, it stands before the requests for every other thread.
"""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

__all__ = ["KeyedLock"]


class KeyedLock:
    """Locks by key, each there for as long as it is held or waited for. First come, first served."""

    def __init__(self) -> None:
        self._locks: dict[Hashable, asyncio.Lock] = {}
        self._users: dict[Hashable, int] = {}

    @asynccontextmanager
    async def one_at_a_time(self, key: Hashable | None) -> AsyncIterator[None]:
        """Go on when all earlier holders of this key are done; at once without a key."""
        if key is None:
            yield
            return
        lock = self._locks.setdefault(key, asyncio.Lock())
        self._users[key] = self._users.get(key, 0) + 1
        try:
            async with lock:
                yield
        finally:
            self._users[key] -= 1
            if not self._users[key]:
                del self._users[key], self._locks[key]

    def __len__(self) -> int:
        """The number of keys that are held or waited for."""
        return len(self._locks)
