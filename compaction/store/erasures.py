"""Places of erased messages, and the outbox without their words."""

from collections.abc import Collection, Mapping

import msgspec
from sqlalchemy import Connection, func, select, update

from threadmark.compaction import tables
from threadmark.compaction.input.source import Position, Role
from threadmark.compaction.model.promotion import Promotion
from threadmark.db.portable import insert_all_new

__all__ = ["add_erasures", "count_erasures", "erase_promotions", "said_by"]

_PROMOTION = msgspec.json.Decoder(Promotion)
_column = tables.promotion.c


def add_erasures(connection: Connection, thread: int, gone: Mapping[Position, Role]) -> None:
    """Remember where the messages stood, and who spoke."""
    places = [
        {"thread": thread, "seq": position.seq, "message": position.message, "role": role}
        for position, role in gone.items()
    ]
    insert_all_new(connection, tables.erasure, places)


def count_erasures(connection: Connection, thread: int) -> int:
    """How many messages of the thread are erased; it only rises."""
    counted = select(func.count()).select_from(tables.erasure).where(tables.erasure.c.thread == thread)
    return int(connection.execute(counted).scalar_one())


def said_by(connection: Connection, thread: int, erased: Collection[int]) -> list[str]:
    """The ids of the statements that only erased entries said and that have their words, delivered or not."""
    rows = connection.execute(select(tables.promotion).where(_column.thread == thread, _column.status != "erased"))
    return [
        row.promotion_id for row in rows if all(source.seq in erased for source in _PROMOTION.decode(row.body).sources)
    ]


def erase_promotions(connection: Connection, promotion_ids: Collection[str]) -> int:
    """Empty these statements; how many had words."""
    named = _column.promotion_id.in_(list(promotion_ids))
    rows = connection.execute(select(tables.promotion).where(named, _column.status != "erased").with_for_update()).all()
    for row in rows:
        emptied = msgspec.structs.replace(_PROMOTION.decode(row.body), text="", canon="")
        connection.execute(
            update(tables.promotion)
            .where(_column.promotion_id == row.promotion_id)
            .values(status="erased", body=msgspec.json.encode(emptied), error=None)
        )
    return len(rows)
