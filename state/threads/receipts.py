"""Receipts: the stored replies of idempotency keys, committed with what their requests created."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, exists, or_, select, update

from threadmark.db.portable import insert_new
from threadmark.state import tables
from threadmark.state.errors import KeyReused

__all__ = ["KEEP_S", "Receipt", "Reply", "look_up", "prune", "record", "replied", "store_reply"]

#: How long receipts are kept at least (24 hours); after that the key names a new request.
KEEP_S = 24 * 3600
_receipt, _run, _thread = tables.receipt.c, tables.run.c, tables.thread.c
#: Of a deleted thread, whose rows are still being removed. Workers of the previous version write no thread.
_is_outlived = or_(
    and_(_receipt.thread.is_not(None), ~exists().where(_thread.number == _receipt.thread)),
    and_(
        _receipt.thread.is_(None),
        _receipt.run_id.is_not(None),
        ~exists().where(_run.run_id == _receipt.run_id, _thread.number == _run.thread),
    ),
).label("is_outlived")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A stored reply. `body` is None while the request (a wait, a stream) has no answer; `run_id` names its run."""

    status_code: int | None
    body: bytes | None
    run_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """An idempotency key, the digest of its request, and how to build the reply from what was created.

    `answer` is called inside the unit with the created value; None leaves the reply open.
    """

    key: str
    request_digest: str
    answer: Callable[[Any], tuple[int, bytes]] | None


def look_up(connection: Connection, tenant_id: str, receipt: Receipt | None, *, now_us: int) -> Reply | None:
    """The stored reply of the key; None for a new key, which is then reserved. Raises KeyReused.

    The reservation comes first: of two equal requests in two processes, the second waits here for the first one's
    commit and then finds its reply.
    """
    if receipt is None:
        return None
    reserved = insert_new(
        connection,
        tables.receipt,
        {
            "tenant_id": tenant_id,
            "key": receipt.key,
            "request_digest": receipt.request_digest,
            "created_at": now_us,
        },
    )
    if reserved is not None:
        return None
    row = connection.execute(select(tables.receipt, _is_outlived).where(*_is(tenant_id, receipt.key))).one()
    if row.is_outlived:
        taken = {"request_digest": receipt.request_digest, "created_at": now_us}
        free = {"run_id": None, "thread": None, "status_code": None, "reply": None}
        connection.execute(update(tables.receipt).where(*_is(tenant_id, receipt.key)).values(taken | free))
        return None
    return _reply(row, receipt)


def record(
    connection: Connection,
    tenant_id: str,
    receipt: Receipt | None,
    made: Any,
    *,
    run_id: str | None = None,
    thread: int | None = None,
) -> None:
    """Store the reply of the reserved key, in the unit that created `made`.

    A reply about one thread goes with the thread (its number).
    """
    if receipt is None:
        return
    status_code, body = receipt.answer(made) if receipt.answer else (None, None)
    connection.execute(
        update(tables.receipt)
        .where(*_is(tenant_id, receipt.key))
        .values(run_id=run_id, thread=thread, status_code=status_code, reply=body)
    )


def store_reply(connection: Connection, tenant_id: str, key: str, status_code: int, body: bytes) -> Reply | None:
    """Complete a receipt whose reply was open; the reply of an equal request that came first, if there is one."""
    open_one = update(tables.receipt).where(*_is(tenant_id, key), tables.receipt.c.reply.is_(None))
    if connection.execute(open_one.values(status_code=status_code, reply=body)).rowcount:
        return None
    row = connection.execute(select(tables.receipt).where(*_is(tenant_id, key))).one_or_none()
    return None if row is None else Reply(status_code=row.status_code, body=row.reply, run_id=row.run_id)


def replied(connection: Connection, tenant_id: str, receipt: Receipt) -> Reply | None:
    """The stored reply of the key; None for a new key, which is not reserved. Raises KeyReused."""
    row = connection.execute(select(tables.receipt, _is_outlived).where(*_is(tenant_id, receipt.key))).one_or_none()
    return None if row is None or row.is_outlived else _reply(row, receipt)


def prune(connection: Connection, now_us: int) -> int:
    """Delete receipts older than KEEP_S; returns how many."""
    old = tables.receipt.c.created_at < now_us - KEEP_S * 1_000_000
    return connection.execute(delete(tables.receipt).where(old)).rowcount


def _reply(row: Row[Any], receipt: Receipt) -> Reply:
    if row.request_digest != receipt.request_digest:
        raise KeyReused(receipt.key)
    return Reply(status_code=row.status_code, body=row.reply, run_id=row.run_id)


def _is(tenant_id: str, key: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return tables.receipt.c.tenant_id == tenant_id, tables.receipt.c.key == key
