"""Receipts: what a change answered to its idempotency key, committed with the change or not at all.

A repeated request gets the same answer, also from another server, and also after a crash that left nothing but this
database. Of two servers at once, one makes the change; the other asks again until it is committed and blocks no other
write meanwhile: a writer that waited in the database for one key would stop for every tenant.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, delete, insert, select, text

from threadmark.memory.errors import AnsweredBefore, ReceiptInProgress, ReceiptReused
from threadmark.memory.store.database import Database
from threadmark.memory.store.job_tables import receipt as receipts

__all__ = ["Receipt", "forget_expired", "refuse_answered", "write_once"]

#: How long to wait before the first change is asked for again, doubled each time (seconds).
POLL_S, POLL_S_MAX = 0.02, 0.25
BATCH_COUNT = 500
_TAKE_TURN = text("SELECT pg_try_advisory_xact_lock(:key)")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt(Generic[T]):
    """An idempotency key and the digest of its request, and how the answer is spelled from what the change made.

    `answer` is called inside the transaction. The receipt is kept for `keep_s` seconds; of two changes at once, the
    later waits `wait_s` seconds at most for the first.
    """

    key: str
    request_digest: str
    answer: Callable[[T], bytes]
    keep_s: int
    wait_s: float


async def refuse_answered(database: Database, tenant_id: str, receipt: Receipt[Any] | None, now: int) -> None:
    """Look for the answer before any work is done. Raises AnsweredBefore, ReceiptReused."""
    if receipt is not None:
        await database.read(partial(_refuse_answered, tenant_id=tenant_id, receipt=receipt, now=now))


async def write_once(
    database: Database,
    unit: Callable[[Connection], T],
    *,
    tenant_id: str,
    receipt: Receipt[T] | None,
    now: int,
    words_of: str | None = None,
) -> T:
    """The result of `unit`, which is committed together with its receipt; `words_of` is erased with this assertion.

    Raises AnsweredBefore, ReceiptReused and ReceiptInProgress, and then changes nothing.
    """
    if receipt is None:
        return await database.write(unit)
    whole = partial(_once, unit=unit, tenant_id=tenant_id, receipt=receipt, now=now, words_of=words_of)
    deadline, wait_s = time.monotonic() + receipt.wait_s, POLL_S
    while True:
        try:
            return await database.write(whole)
        except ReceiptInProgress:
            if time.monotonic() + wait_s > deadline:
                raise
        await asyncio.sleep(wait_s)
        wait_s = min(wait_s * 2, POLL_S_MAX)


def forget_expired(connection: Connection, now: int) -> bool:
    """Remove some of the receipts whose time is over; whether there were any."""
    some = select(receipts.c.number).where(receipts.c.expires_at <= now).limit(BATCH_COUNT)
    numbers = list(connection.scalars(some))
    if numbers:
        connection.execute(delete(receipts).where(receipts.c.number.in_(numbers)))
    return bool(numbers)


def _once(
    connection: Connection,
    unit: Callable[[Connection], T],
    tenant_id: str,
    receipt: Receipt[T],
    now: int,
    words_of: str | None,
) -> T:
    digest = _key_digest(receipt.key)
    if connection.dialect.name == "postgresql" and not connection.scalar(_TAKE_TURN, _turn(tenant_id, digest)):
        raise ReceiptInProgress(receipt.key)
    _refuse_answered(connection, tenant_id, receipt, now)
    made = unit(connection)
    mine = (receipts.c.tenant_id == tenant_id) & (receipts.c.key_digest == digest)
    # Only one whose time is over can be left: after it the key names a new request.
    connection.execute(delete(receipts).where(mine))
    connection.execute(
        insert(receipts).values(
            tenant_id=tenant_id,
            key_digest=digest,
            request_digest=receipt.request_digest,
            answer=receipt.answer(made).decode(),
            words_of=words_of,
            created_at=now,
            expires_at=now + receipt.keep_s * 1_000_000,
        )
    )
    return made


def _refuse_answered(connection: Connection, tenant_id: str, receipt: Receipt[Any], now: int) -> None:
    query = select(receipts.c.request_digest, receipts.c.answer).where(
        receipts.c.tenant_id == tenant_id,
        receipts.c.key_digest == _key_digest(receipt.key),
        receipts.c.expires_at > now,
    )
    found = connection.execute(query).one_or_none()
    if found is None:
        return
    if found.request_digest != receipt.request_digest:
        raise ReceiptReused(receipt.key)
    raise AnsweredBefore(found.answer.encode())


def _key_digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _turn(tenant_id: str, digest: str) -> dict[str, int]:
    """The advisory lock of a key: two keys that share one only wait for each other."""
    name = hashlib.sha256(f"threadmark memory receipt\0{tenant_id}\0{digest}".encode()).digest()
    return {"key": int.from_bytes(name[:8], "big", signed=True)}
