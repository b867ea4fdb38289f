"""Views, segments and the pointer of a thread: read, written, and moved by compare-and-set."""

import hashlib
from collections.abc import Collection, Iterable, Mapping

import msgspec
from sqlalchemy import Connection, Row, insert, select, update

from threadmark.compaction import tables
from threadmark.compaction.input.source import Position, Role
from threadmark.compaction.ledger import GENESIS
from threadmark.compaction.model.records import WHOLE_VIEW, Cause, CurrentView, KeptView
from threadmark.compaction.view import Item, Segment, View, first_view
from threadmark.db.portable import insert_new
from threadmark.state import from_us, to_us

__all__ = [
    "add_segment",
    "add_view",
    "erased_in",
    "find_view",
    "list_views",
    "move_current_view",
    "put_segment",
    "read_current_view",
    "read_segments",
    "segments_of_thread",
    "signature_of",
    "whole_view",
]

_ITEMS = msgspec.json.Decoder(tuple[Item, ...])
_SEGMENT = msgspec.json.Decoder(Segment)
_NAMES = msgspec.json.Decoder(tuple[str, ...])


def whole_view() -> KeptView:
    """The view that every thread begins with: everything."""
    return KeptView(view=first_view(WHOLE_VIEW), cause=Cause.COMPACTION)


def signature_of(covered: Iterable[int], versions: Mapping[int, int]) -> str:
    """Names the covered entries in their present versions; equal only for the same messages. `versions` is by seq."""
    pairs = [(seq, versions.get(seq, 0)) for seq in covered]
    return hashlib.sha256(msgspec.json.encode(pairs)).hexdigest()


def read_current_view(connection: Connection, thread: int) -> CurrentView:
    """Where the thread stands."""
    row = connection.execute(select(tables.current_view).where(tables.current_view.c.thread == thread)).one_or_none()
    if row is None:
        return CurrentView(view_id=WHOLE_VIEW, version=1, ledger_root=GENESIS)
    return CurrentView(view_id=row.view_id, version=row.version, ledger_root=row.ledger_root)


def move_current_view(connection: Connection, thread: int, before: CurrentView, view: View, ledger_root: str) -> bool:
    """Point the thread at `view`, if it still stands where it stood; whether it did."""
    values = {"view_id": view.view_id, "version": view.version, "ledger_root": ledger_root}
    if before.version == 1:
        return insert_new(connection, tables.current_view, {"thread": thread, **values}) is not None
    column = tables.current_view.c
    moved = connection.execute(
        update(tables.current_view).where(column.thread == thread, column.version == before.version).values(values)
    )
    return moved.rowcount == 1


def add_view(connection: Connection, thread: int, kept: KeptView) -> None:
    """Keep a view."""
    view = kept.view
    connection.execute(
        insert(tables.view),
        {
            "view_id": view.view_id,
            "thread": thread,
            "version": view.version,
            "parent_id": view.parent_id,
            "compaction_id": view.compaction_id,
            "cause": kept.cause,
            "requested_by": kept.requested_by,
            "head_seq": kept.head_seq,
            "ledgers": msgspec.json.encode(kept.ledgers),
            "items": msgspec.json.encode(view.items),
            "created_at": 0 if kept.created_at is None else to_us(kept.created_at),
        },
    )


def find_view(connection: Connection, thread: int, view_id: str | None) -> KeptView | None:
    """The view of the thread with this id; `whole` is one of every thread."""
    if view_id is None or view_id == WHOLE_VIEW:
        return whole_view()
    column = tables.view.c
    row = connection.execute(
        select(tables.view).where(column.view_id == view_id, column.thread == thread)
    ).one_or_none()
    return None if row is None else _view_of(row)


def list_views(connection: Connection, thread: int, count_max: int, *, below: int | None = None) -> list[KeptView]:
    """The thread's views, newest first, those below a version; without the one that it began with."""
    column = tables.view.c
    statement = select(tables.view).where(column.thread == thread)
    if below is not None:
        statement = statement.where(column.version < below)
    return [_view_of(row) for row in connection.execute(statement.order_by(column.version.desc()).limit(count_max))]


def add_segment(connection: Connection, thread: int, segment: Segment, signature: str) -> None:
    """Keep a segment."""
    connection.execute(
        insert(tables.segment),
        {
            "segment_id": segment.segment_id,
            "thread": thread,
            "compaction_id": segment.compaction_id,
            "signature": signature,
            "body": msgspec.json.encode(segment),
        },
    )


def put_segment(connection: Connection, segment: Segment) -> None:
    """Put a segment that was written again in the place of the old one."""
    connection.execute(
        update(tables.segment)
        .where(tables.segment.c.segment_id == segment.segment_id)
        .values(body=msgspec.json.encode(segment))
    )


def read_segments(
    connection: Connection, thread: int, segment_ids: Collection[str]
) -> tuple[dict[str, Segment], dict[str, str]]:
    """The segments, and their signatures, by id."""
    if not segment_ids:
        return {}, {}
    column = tables.segment.c
    rows = connection.execute(
        select(tables.segment).where(column.thread == thread, column.segment_id.in_(list(segment_ids)))
    ).all()
    return (
        {row.segment_id: _SEGMENT.decode(row.body) for row in rows},
        {row.segment_id: row.signature for row in rows},
    )


def segments_of_thread(connection: Connection, thread: int) -> list[Segment]:
    """Every segment that the thread ever had."""
    rows = connection.execute(select(tables.segment.c.body).where(tables.segment.c.thread == thread))
    return [_SEGMENT.decode(row.body) for row in rows]


def erased_in(connection: Connection, thread: int) -> dict[Position, Role]:
    """The erased messages of the thread, and who spoke."""
    rows = connection.execute(select(tables.erasure).where(tables.erasure.c.thread == thread))
    return {Position(row.seq, row.message): Role(row.role) for row in rows}


def _view_of(row: Row[tuple[object, ...]]) -> KeptView:
    return KeptView(
        view=View(
            view_id=row.view_id,
            items=_ITEMS.decode(row.items),
            version=row.version,
            parent_id=row.parent_id,
            compaction_id=row.compaction_id,
        ),
        cause=Cause(row.cause),
        ledgers=_NAMES.decode(row.ledgers),
        head_seq=row.head_seq,
        requested_by=row.requested_by,
        created_at=from_us(row.created_at),
    )
