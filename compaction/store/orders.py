"""Compactions: ordered once per key, changed by the process that performs them, ended once."""

from collections.abc import Collection, Mapping
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, Update, select, update

from threadmark.compaction import tables
from threadmark.compaction.model.plan import Plan
from threadmark.compaction.model.policy import Policy, SummariserKind
from threadmark.compaction.model.records import MOVES, OPEN, Compaction, CompactionStatus, Order, Rejection, Trigger
from threadmark.db.portable import insert_new
from threadmark.state import from_us

__all__ = [
    "abort_planned",
    "change",
    "changed",
    "compaction_of",
    "find_by_key",
    "find_compaction",
    "list_compactions",
    "list_keyed",
    "note_words_gone",
    "order_once",
    "set_statuses",
    "with_words",
]

_PLAN = msgspec.json.Decoder(Plan)
_POLICY = msgspec.json.Decoder(Policy)
_TOTALS = msgspec.json.Decoder(dict[str, dict[str, int]])
_REJECTIONS = msgspec.json.Decoder(tuple[Rejection, ...])
_column = tables.compaction.c


def order_once(
    connection: Connection, *, compaction_id: str, tenant_id: str, thread: int, order: Order, digest: str, now_us: int
) -> Compaction | None:
    """A new compaction; None when the tenant has used the key before."""
    row = insert_new(
        connection,
        tables.compaction,
        {
            **_EMPTY,
            "compaction_id": compaction_id,
            "tenant_id": tenant_id,
            "thread": thread,
            "key": order.key,
            "request_digest": digest,
            "trigger": order.trigger,
            "requested_by": order.requested_by,
            "summariser": order.summariser,
            "policy": msgspec.json.encode(order.policy),
            "base_tokens": order.base_tokens,
            "purse_id": None if order.purse is msgspec.UNSET else order.purse,
            "created_at": now_us,
            "updated_at": now_us,
        },
    )
    return None if row is None else compaction_of(row)


def find_by_key(connection: Connection, tenant_id: str, key: str) -> tuple[Compaction, str] | None:
    """The compaction that was ordered under a key, and the digest of its order."""
    row = connection.execute(
        select(tables.compaction).where(_column.tenant_id == tenant_id, _column.key == key)
    ).one_or_none()
    return None if row is None else (compaction_of(row), row.request_digest)


def find_compaction(connection: Connection, compaction_id: str, tenant_id: str | None = None) -> Compaction | None:
    """The compaction; with `tenant_id`, only if it is that tenant's."""
    statement = select(tables.compaction).where(_column.compaction_id == compaction_id)
    if tenant_id is not None:
        statement = statement.where(_column.tenant_id == tenant_id)
    row = connection.execute(statement).one_or_none()
    return None if row is None else compaction_of(row)


def list_compactions(
    connection: Connection,
    thread: int,
    *,
    count_max: int | None,
    before_id: str | None = None,
    oldest_first: bool = False,
) -> list[Compaction]:
    """The thread's compactions, newest first; their ids rise with time. `before_id` is where the last page ended."""
    order = _column.compaction_id if oldest_first else _column.compaction_id.desc()
    statement = select(tables.compaction).where(_column.thread == thread).order_by(order).limit(count_max)
    if before_id is not None:
        statement = statement.where(_column.compaction_id < before_id)
    return [compaction_of(row) for row in connection.execute(statement)]


def list_keyed(
    connection: Connection, tenant_id: str, prefix: str, *, after_key: str, count_max: int
) -> list[Compaction]:
    """The tenant's compactions whose key begins with `prefix`, in the order of their keys, behind `after_key`."""
    statement = (
        select(tables.compaction)
        .where(
            _column.tenant_id == tenant_id,
            _column.key.startswith(prefix, autoescape=True),
            _column.key > after_key,
        )
        .order_by(_column.key)
        .limit(count_max)
    )
    return [compaction_of(row) for row in connection.execute(statement)]


def with_words(connection: Connection, before_us: int, count_max: int) -> list[str]:
    """Compactions that were committed before then and whose ledgers still have their words, the oldest first."""
    statement = (
        select(_column.compaction_id)
        .where(_column.words_gone_at.is_(None), _column.committed_at < before_us)
        .order_by(_column.committed_at)
        .limit(count_max)
    )
    return list(connection.execute(statement).scalars())


def note_words_gone(connection: Connection, compaction_id: str, now_us: int) -> None:
    """Note that the ledger's words are digests."""
    connection.execute(
        update(tables.compaction).where(_column.compaction_id == compaction_id).values(words_gone_at=now_us)
    )


def change(connection: Connection, compaction_id: str, holder: str, values: Mapping[str, Any]) -> bool:
    """Write columns of a compaction that `holder` performs; False, and nothing written, when it does not."""
    return connection.execute(_change(compaction_id, holder, values)).rowcount == 1


def changed(connection: Connection, compaction_id: str, holder: str, values: Mapping[str, Any]) -> Compaction | None:
    """As `change`; the compaction as it is then, or None."""
    row = connection.execute(_change(compaction_id, holder, values).returning(tables.compaction)).one_or_none()
    return None if row is None else compaction_of(row)


def _change(compaction_id: str, holder: str, values: Mapping[str, Any]) -> Update:
    return (
        update(tables.compaction)
        .where(
            _column.compaction_id == compaction_id,
            _column.status == CompactionStatus.SUMMARISING,
            _column.holder == holder,
        )
        .values(dict(values))
    )


def abort_planned(connection: Connection, compaction_id: str, code: str, why: str, now_us: int) -> None:
    """End a compaction that has not begun."""
    connection.execute(
        update(tables.compaction)
        .where(_column.compaction_id == compaction_id, _column.status == CompactionStatus.PLANNED)
        .values(status=CompactionStatus.ABORTED, error_code=code, error=why, updated_at=now_us)
    )


def set_statuses(
    connection: Connection, compaction_ids: Collection[str], status: CompactionStatus, now_us: int
) -> None:
    """Say that compactions are in effect no longer, or again."""
    if not compaction_ids:
        return
    sources = sorted(each for each, targets in MOVES.items() if status in targets and each not in OPEN)
    connection.execute(
        update(tables.compaction)
        .where(_column.compaction_id.in_(sorted(compaction_ids)), _column.status.in_(sources))
        .values(status=status, updated_at=now_us)
    )


_EMPTY: dict[str, Any] = {
    "status": CompactionStatus.PLANNED,
    "signature": "",
    **dict.fromkeys(
        (
            "branch",
            "head_seq",
            "from_seq",
            "to_seq",
            "tokens_before",
            "tokens_after",
            "floor_tokens",
            "prompt_tokens",
            "output_tokens",
            "critical_dropped",
            "introduced",
            "ordinal",
            "extractor_version",
            "prompt_version",
            "attempts",
            "held_until",
            "rows_ahead",
        ),
        0,
    ),
    "shown_ratio": 0.0,
    "prev_ledger_root": "",
    "ledger_root": "",
}


def compaction_of(row: Row[Any]) -> Compaction:
    """The compaction of a row."""
    return Compaction(
        compaction_id=row.compaction_id,
        tenant_id=row.tenant_id,
        thread=row.thread,
        key=row.key,
        status=CompactionStatus(row.status),
        trigger=Trigger(row.trigger),
        summariser=SummariserKind(row.summariser),
        requested_by=row.requested_by,
        policy=_POLICY.decode(row.policy),
        base_tokens=row.base_tokens,
        purse=msgspec.UNSET if row.purse_id is None else row.purse_id,
        cost=row.cost,
        plan=None if row.plan is None else _PLAN.decode(row.plan),
        signature=row.signature,
        branch=row.branch,
        head_seq=row.head_seq,
        covers=(row.from_seq, row.to_seq),
        tokens_before=row.tokens_before,
        tokens_after=row.tokens_after,
        floor_tokens=row.floor_tokens,
        prompt_tokens=row.prompt_tokens,
        output_tokens=row.output_tokens,
        shown_ratio=row.shown_ratio,
        strategy=row.strategy,
        totals={} if row.totals is None else _TOTALS.decode(row.totals),
        rejections=() if row.rejections is None else _REJECTIONS.decode(row.rejections),
        critical_dropped=row.critical_dropped,
        introduced=row.introduced,
        ordinal=row.ordinal,
        prev_ledger_root=row.prev_ledger_root,
        ledger_root=row.ledger_root,
        extractor_version=row.extractor_version,
        prompt_version=row.prompt_version,
        view_id=row.view_id,
        error_code=row.error_code,
        error=row.error,
        attempts=row.attempts,
        held_until_us=row.held_until,
        created_at=from_us(row.created_at),
        updated_at=from_us(row.updated_at),
        committed_at=None if row.committed_at is None else from_us(row.committed_at),
    )
