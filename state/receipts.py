"""Receipts: what an idempotency key stands for, committed with what its request made."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from state import tables
from state.errors import KeyReused

__all__ = ["KEEP_S", "Receipt", "Reply", "look_up", "prune", "record", "store_reply"]

#: Receipts live at least this long (24 hours); later the key names a new request.
KEEP_S = 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A stored answer. `body` is None while the request (a wait, a stream) has none; `run_id` names its run."""

    status_code: int | None
    body: bytes | None
    run_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """An idempotency key, the digest of its request, and how to write the answer from what was made.

    `answer` is called inside the unit with the thing made; None leaves the answer open.
    """

    key: str
    request_digest: str
    answer: Callable[[Any], tuple[int, bytes]] | None


def look_up(connection: Connection, tenant_id: str, receipt: Receipt | None) -> Reply | None:
    """The answer that the key stands for; None for a new key. Raises KeyReused for another request."""
    if receipt is None:
        return None
    columns = tables.receipt.c
    row = connection.execute(
        select(tables.receipt).where(columns.tenant_id == tenant_id, columns.key == receipt.key)
    ).one_or_none()
    if row is None:
        return None
    if row.request_digest != receipt.request_digest:
        raise KeyReused(receipt.key)
    return Reply(status_code=row.status_code, body=row.reply, run_id=row.run_id)


def record(
    connection: Connection,
    tenant_id: str,
    receipt: Receipt | None,
    made: Any,
    *,
    now_us: int,
    run_id: str | None = None,
) -> None:
    """Keep the answer for the key, in the unit that made `made`."""
    if receipt is None:
        return
    status_code, body = receipt.answer(made) if receipt.answer else (None, None)
    connection.execute(
        insert(tables.receipt),
        {
            "tenant_id": tenant_id,
            "key": receipt.key,
            "request_digest": receipt.request_digest,
            "run_id": run_id,
            "status_code": status_code,
            "reply": body,
            "created_at": now_us,
        },
    )


def store_reply(connection: Connection, tenant_id: str, key: str, status_code: int, body: bytes) -> None:
    """Complete a receipt whose answer was open."""
    columns = tables.receipt.c
    connection.execute(
        update(tables.receipt)
        .where(columns.tenant_id == tenant_id, columns.key == key, columns.reply.is_(None))
        .values(status_code=status_code, reply=body)
    )


def prune(connection: Connection, now_us: int) -> int:
    """Forget receipts older than KEEP_S; how many."""
    old = tables.receipt.c.created_at < now_us - KEEP_S * 1_000_000
    return connection.execute(delete(tables.receipt).where(old)).rowcount
