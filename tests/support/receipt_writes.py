"""Writes of memory that keep the answer to an idempotency key, and one that holds its transaction open."""

import asyncio
import threading
from typing import Any

from sqlalchemy import Connection

from threadmark.memory import Receipt

__all__ = ["US", "Slow", "named"]

US = 1_000_000


class Slow:
    """A unit that holds its transaction open until it is let go."""

    def __init__(self) -> None:
        self.go_on, self._has_begun = threading.Event(), threading.Event()

    def unit(self, _: Connection) -> str:
        self._has_begun.set()
        assert self.go_on.wait(60)
        return "made"

    async def begun(self) -> None:
        """Come back when it has begun."""
        assert await asyncio.to_thread(self._has_begun.wait, 30)


def named(tenant_id: str, key: str, *, digest: str = "d", wait_s: float = 30.0, at: int = US) -> Any:
    """The arguments of a write that keeps an answer of one day."""
    kept: Receipt[str] = Receipt(key=key, request_digest=digest, answer=str.encode, keep_s=24 * 3600, wait_s=wait_s)
    return {"tenant_id": tenant_id, "receipt": kept, "now": at}
