"""Rows of ledgers, promotions and analyses: kept with the compaction that made them, searched, erased."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, and_, bindparam, delete, exists, select, update

from threadmark.compaction import tables
from threadmark.compaction.atoms import EXTRACTOR_VERSION
from threadmark.compaction.input.analysis import PartAnalysis
from threadmark.compaction.ledger import Row
from threadmark.compaction.model.promotion import Promotion
from threadmark.compaction.model.records import Drop, DropFilter, QueuedPromotion
from threadmark.db.portable import insert_new

__all__ = [
    "add_analyses",
    "add_promotions",
    "analysed_keys",
    "drop_id_of",
    "due_promotions",
    "exact_rows",
    "find_drop",
    "forget_analyses",
    "page_of_rows",
    "put_rows",
    "read_analyses",
    "read_rows",
    "row_values",
    "rows_numbered",
    "rows_of_tenant",
    "set_promotion",
]

FOLDED_LENGTH_MAX = 2_000
#: Characters of a text that the index has; PostgreSQL takes 2,700 bytes of a key.
SURFACE_LENGTH = 64
_ROW = msgspec.json.Decoder(Row)
_FOUND = msgspec.json.Decoder(tuple[PartAnalysis, ...])
_PROMOTION = msgspec.json.Decoder(Promotion)
_column = tables.ledger_row.c
_OURS = f"{EXTRACTOR_VERSION}:"  #: how the keys of this extractor's analyses begin
#: Analyses of other extractors that are removed at once.
_OTHERS_COUNT = 500
#: Of a committed ledger: rows are written before the commit of their compaction, and until then they belong to none.
_stands = exists().where(tables.compaction.c.compaction_id == _column.compaction_id, tables.compaction.c.ordinal > 0)


def drop_id_of(compaction_id: str, row_id: str) -> str:
    """The name of a row over all ledgers."""
    return f"{compaction_id}.{row_id}"


def row_values(compaction_id: str, tenant_id: str, thread: int, number: int, row: Row) -> dict[str, Any]:
    """The columns of the row that stands at `number` in its ledger."""
    return {
        "compaction_id": compaction_id,
        "number": number,
        "row_id": row.row_id,
        "tenant_id": tenant_id,
        "thread": thread,
        "unit": row.unit,
        "cls": row.cls,
        "role": row.role,
        "critical": row.critical,
        "first_seq": row.sources[0].seq if row.sources else 0,
        "last_seq": row.sources[-1].seq if row.sources else 0,
        **_changing(row),
    }


def put_rows(connection: Connection, compaction_id: str, rows: Mapping[int, Row]) -> None:
    """Put rows (by their number) that an erasure changed in the place of the old ones; their names stay."""
    if rows:
        one = update(tables.ledger_row).where(
            _column.compaction_id == compaction_id, _column.number == bindparam("at_number")
        )
        connection.execute(one, [{"at_number": number, **_changing(row)} for number, row in rows.items()])


def _changing(row: Row) -> dict[str, Any]:
    folded = _folded(row.text)
    return {
        "status": row.status,
        "reason": row.reason,
        "folded": folded,
        "surface": folded[:SURFACE_LENGTH],
        "body": msgspec.json.encode(row),
    }


def _folded(text: str) -> str:
    # PostgreSQL's text has no NUL; these columns are for searching only.
    return text.casefold()[:FOLDED_LENGTH_MAX].replace("\0", " ")


def read_rows(connection: Connection, compaction_id: str) -> list[Row]:
    """The whole ledger, in order; none of a compaction that is not committed."""
    rows = connection.execute(
        select(_column.body).where(_column.compaction_id == compaction_id, _stands).order_by(_column.number)
    )
    return [_ROW.decode(row.body) for row in rows]


def rows_numbered(connection: Connection, compaction_id: str, numbers: Collection[int]) -> dict[int, Row]:
    """Rows of a committed ledger by their numbers."""
    rows = connection.execute(
        select(_column.number, _column.body).where(
            _column.compaction_id == compaction_id, _column.number.in_(list(numbers)), _stands
        )
    )
    return {row.number: _ROW.decode(row.body) for row in rows}


def page_of_rows(
    connection: Connection, compaction_id: str, chosen: DropFilter, *, after: int, count_max: int | None
) -> list[Drop]:
    """Rows of a ledger with a number above `after` (-1: from the first), in order, that pass the filter."""
    statement = (
        select(tables.ledger_row)
        .where(_column.compaction_id == compaction_id, _column.number > after, *_conditions(chosen))
        .order_by(_column.number)
        .limit(count_max)
    )
    return _drops(connection, statement)


def rows_of_tenant(
    connection: Connection, tenant_id: str, chosen: DropFilter, row_ids: Collection[str], *, count_max: int
) -> list[Drop]:
    """Rows of all threads of a tenant: the units with these ids, then those that pass the filter, newest first."""
    exact = select(tables.ledger_row).where(_column.tenant_id == tenant_id, _column.row_id.in_(list(row_ids)))
    statuses = (_column.status.in_(chosen.statuses),) if chosen.statuses else ()
    found = _drops(connection, exact.where(*statuses).limit(count_max)) if row_ids else []
    others = (
        select(tables.ledger_row)
        .where(_column.tenant_id == tenant_id, *_conditions(chosen))
        .order_by(_column.compaction_id.desc(), _column.number)
        .limit(count_max)
    )
    known = {drop.drop_id for drop in found}
    return [*found, *(drop for drop in _drops(connection, others) if drop.drop_id not in known)]


def exact_rows(
    connection: Connection, tenant_id: str, chosen: DropFilter, text: str, row_ids: Collection[str], count_max: int
) -> list[Drop]:
    """Rows of all threads of a tenant that are written so, whole (case aside), or have these ids; by indexes alone."""
    folded = _folded(text)
    written = and_(_column.surface == folded[:SURFACE_LENGTH], _column.folded == folded)
    found: dict[str, Drop] = {}
    for way in (_column.row_id.in_(list(row_ids)), written):
        those = select(tables.ledger_row).where(_column.tenant_id == tenant_id, way, *_conditions(chosen))
        newest = those.order_by(_column.compaction_id.desc(), _column.number).limit(count_max)
        found.update((drop.drop_id, drop) for drop in _drops(connection, newest))
    return list(found.values())


def find_drop(connection: Connection, tenant_id: str, drop_id: str) -> Drop | None:
    """The tenant's row with this name."""
    compaction_id, _, row_id = drop_id.rpartition(".")
    statement = select(tables.ledger_row).where(
        _column.compaction_id == compaction_id, _column.row_id == row_id, _column.tenant_id == tenant_id
    )
    return next(iter(_drops(connection, statement)), None)


def _drops(connection: Connection, statement: Select[Any]) -> list[Drop]:
    """Those of the rows that belong to committed compactions."""
    return [
        Drop(
            drop_id=drop_id_of(row.compaction_id, row.row_id),
            compaction_id=row.compaction_id,
            thread=row.thread,
            number=row.number,
            row=_ROW.decode(row.body),
        )
        for row in connection.execute(statement.where(_stands))
    ]


def _conditions(chosen: DropFilter) -> list[ColumnElement[bool]]:
    named = (
        (_column.status, chosen.statuses),
        (_column.cls, chosen.classes),
        (_column.unit, chosen.units),
        (_column.reason, chosen.reasons),
        (_column.role, chosen.roles),
    )
    conditions: list[ColumnElement[bool]] = [column.in_(names) for column, names in named if names]
    if chosen.critical is not None:
        conditions.append(_column.critical.is_(chosen.critical))
    if chosen.text:
        conditions.append(_column.folded.contains(chosen.text.casefold().replace("\0", " "), autoescape=True))
    if chosen.from_seq is not None:
        conditions.append(_column.last_seq >= chosen.from_seq)
    if chosen.to_seq is not None:
        conditions.append(_column.first_seq <= chosen.to_seq)
    return conditions


def add_promotions(
    connection: Connection,
    compaction_id: str,
    tenant_id: str,
    thread: int,
    promotions: Iterable[Promotion],
    now_us: int,
) -> None:
    """Queue statements for memory; one that is there already (the same of the same thread) stays as it is."""
    for promotion in promotions:
        insert_new(
            connection,
            tables.promotion,
            {
                "promotion_id": promotion.promotion_id,
                "compaction_id": compaction_id,
                "tenant_id": tenant_id,
                "thread": thread,
                "status": "queued",
                "body": msgspec.json.encode(promotion),
                "attempts": 0,
                "due_at": now_us,
                "created_at": now_us,
            },
        )


def due_promotions(
    connection: Connection, now_us: int, count_max: int, compaction_id: str | None = None
) -> list[QueuedPromotion]:
    """Statements that wait for their delivery, the oldest first."""
    column = tables.promotion.c
    statement = select(tables.promotion).where(column.status == "queued", column.due_at <= now_us)
    if compaction_id is not None:
        statement = statement.where(column.compaction_id == compaction_id)
    rows = connection.execute(statement.order_by(column.due_at, column.promotion_id).limit(count_max))
    return [
        QueuedPromotion(
            promotion=_PROMOTION.decode(row.body),
            compaction_id=row.compaction_id,
            tenant_id=row.tenant_id,
            thread=row.thread,
            status=row.status,
            attempts=row.attempts,
            memory_id=row.memory_id,
            error=row.error,
        )
        for row in rows
    ]


def set_promotion(connection: Connection, promotion_id: str, values: Mapping[str, Any]) -> None:
    """Write columns of a statement that is still queued."""
    column = tables.promotion.c
    connection.execute(
        update(tables.promotion)
        .where(column.promotion_id == promotion_id, column.status == "queued")
        .values(dict(values))
    )


def read_analyses(connection: Connection, thread: int) -> dict[str, tuple[PartAnalysis, ...]]:
    """What this extractor found in the thread's messages, by the key of `Analyses`."""
    column = tables.analysis.c
    rows = connection.execute(select(tables.analysis).where(column.thread == thread, column.key.startswith(_OURS)))
    return {row.key: _FOUND.decode(row.found) for row in rows}


def analysed_keys(connection: Connection, thread: int, *, of_others: bool = False) -> set[str]:
    """The keys of what `read_analyses` would read; also those of other extractors, if `of_others`."""
    column = tables.analysis.c
    keys = select(column.key).where(column.thread == thread)
    return set(connection.scalars(keys if of_others else keys.where(column.key.startswith(_OURS))))


def add_analyses(connection: Connection, thread: int, added: Mapping[str, tuple[PartAnalysis, ...]]) -> None:
    """Keep analyses; those that are there stay, but for those of another extractor."""
    column = tables.analysis.c
    if added:
        others = select(column.key).where(column.thread == thread, ~column.key.startswith(_OURS)).limit(_OTHERS_COUNT)
        connection.execute(delete(tables.analysis).where(column.thread == thread, column.key.in_(others)))
    for key, found in added.items():
        insert_new(connection, tables.analysis, {"thread": thread, "key": key, "found": msgspec.json.encode(found)})


def forget_analyses(connection: Connection, thread: int, keys: Collection[str]) -> None:
    """Remove analyses of the thread's messages; they are made again when they are needed."""
    column = tables.analysis.c
    connection.execute(delete(tables.analysis).where(column.thread == thread, column.key.in_(list(keys))))
