"""The keys a process knows at the moment: looked up once, asked for again every RECHECK_S seconds."""

import asyncio
import hmac
import logging
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from functools import partial

from threadmark.app.access.key import ApiKey, Caller, Token
from threadmark.app.access.key_store import TOUCH_S, StoredKey, find_key, touch_key
from threadmark.state import Database

__all__ = ["KNOWN_COUNT_MAX", "RECHECK_S", "KeyRing"]

#: A key revoked by another process opens nothing here after this time. Must stay at or below 5 seconds.
RECHECK_S = 2.0
#: Keys known at once; the one used longest ago is looked up again when it comes back.
KNOWN_COUNT_MAX = 10_000
_NO_DIGEST = bytes(32)
_LOG = logging.getLogger("threadmark.access")


class KeyRing:
    """Tells callers from strangers.

    `clock` gives aware UTC instants, for expiry; `monotonic` seconds that never step back, for the age of a look-up.
    """

    def __init__(self, database: Database, *, clock: Callable[[], datetime], monotonic: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock
        self._monotonic = monotonic
        self._known: OrderedDict[str, tuple[StoredKey, float]] = OrderedDict()
        self._touched: dict[str, float] = {}
        self._writes: set[asyncio.Task[None]] = set()

    async def caller_of(self, token: Token) -> Caller | None:
        """Who carries this token; None for a wrong secret and for an unknown, revoked or expired key alike."""
        stored = await self._stored(token.key_id)
        # The comparison is made for an unknown id too, so that the time of the answer does not tell them apart.
        is_right = hmac.compare_digest(token.secret_digest, stored.secret_digest if stored else _NO_DIGEST)
        if stored is None or not is_right or not stored.key.is_live(self._clock()):
            return None
        self._touch(stored.key)
        return Caller(stored.key.tenant_id, stored.key.key_id, stored.key.scopes)

    async def is_live(self, caller: Caller) -> bool:
        """Whether the caller's key still opens anything: what a long stream asks from time to time."""
        stored = await self._stored(caller.key_id)
        return stored is not None and stored.key.is_live(self._clock())

    def knows(self, key_id: str) -> bool:
        """Whether the key was looked up already, so that asking for it reads the database rarely."""
        return key_id in self._known

    def forget(self, key_id: str) -> None:
        """Look the key up again at its next use: it was just revoked or ended here."""
        self._known.pop(key_id, None)

    async def close(self) -> None:
        """Wait for the notes of use that are on their way."""
        await asyncio.gather(*self._writes, return_exceptions=True)

    async def _stored(self, key_id: str) -> StoredKey | None:
        known = self._known.get(key_id)
        asked_s = self._monotonic()
        if known is not None and asked_s - known[1] < RECHECK_S:
            self._known.move_to_end(key_id)
            return known[0]
        stored = await self._database.read(partial(find_key, key_id=key_id))
        if stored is None:
            self._known.pop(key_id, None)
            return None
        # Aged from before the reading: what was revoked meanwhile is not believed for longer than it may be.
        self._known[key_id] = (stored, asked_s)
        self._known.move_to_end(key_id)
        if len(self._known) > KNOWN_COUNT_MAX:
            forgotten, _ = self._known.popitem(last=False)
            self._touched.pop(forgotten, None)
        return stored

    def _touch(self, key: ApiKey) -> None:
        now_s = self._monotonic()
        if now_s - self._touched.get(key.key_id, -TOUCH_S) < TOUCH_S:
            return
        self._touched[key.key_id] = now_s
        # Not awaited: a request does not wait for the note that it was made.
        write = asyncio.create_task(self._database.write(partial(touch_key, key_id=key.key_id, now=self._clock())))
        self._writes.add(write)
        write.add_done_callback(self._written)

    def _written(self, write: "asyncio.Task[None]") -> None:
        self._writes.discard(write)
        if not write.cancelled() and (error := write.exception()) is not None:
            _LOG.warning("the last use of a key was not noted", exc_info=error)
