"""Keys on a shelf in the place of a database: what asks for them, and what notes their use, is counted."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, cast

from threadmark.app.access import Scope, Token
from threadmark.app.access.key import ApiKey
from threadmark.app.access.key_store import StoredKey
from threadmark.app.access.ring import KeyRing

__all__ = ["NOW", "KeyShelf"]

NOW = datetime(2027, 1, 15, tzinfo=UTC)


class KeyShelf:
    """Keys by id, and a clock that stands still until a test moves `now_s`."""

    def __init__(self) -> None:
        self.keys: dict[str, StoredKey] = {}
        self.now_s = 1_000.0
        self.asked: list[str] = []
        self.noted: list[str] = []
        self.in_read: Callable[[], None] = lambda: None
        self.in_note: Callable[[], Awaitable[None]] | None = None
        self.ring = KeyRing(cast(Any, self), clock=self.clock, monotonic=lambda: self.now_s)

    def clock(self) -> datetime:
        """NOW, and the seconds that have passed since the beginning."""
        return NOW + timedelta(seconds=self.now_s - 1_000.0)

    def add(self, *scopes: Scope, tenant_id: str = "acme", **changes: Any) -> Token:
        """Put a fresh key on the shelf."""
        token = Token.fresh()
        key = ApiKey(
            number=len(self.keys) + 1,
            key_id=token.key_id,
            tenant_id=tenant_id,
            label="",
            scopes=frozenset(scopes),
            created_at=NOW,
            **changes,
        )
        self.keys[token.key_id] = StoredKey(key, token.secret_digest)
        return token

    async def read(self, unit: "partial[Any]") -> StoredKey | None:
        """The key that the unit looks for, as a database would give it."""
        key_id = unit.keywords["key_id"]
        self.asked.append(key_id)
        found = self.keys.get(key_id)
        self.in_read()
        return found

    async def write(self, unit: "partial[Any]") -> None:
        """Note that a key was used."""
        if self.in_note is not None:
            await self.in_note()
        self.noted.append(unit.keywords["key_id"])
