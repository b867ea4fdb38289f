"""Places of erased messages, and the outbox without their words."""

from collections.abc import Collection, Mapping

import msgspec
from sqlalchemy import Connection, select, update

from threadmark.compaction import tables
from threadmark.compaction.input.source import Position, Role
from threadmark.compaction.run.promotion import Promotion
from threadmark.compaction.store.insert_new import insert_new

__all__ = ["add_erasures", "erase_promotions"]

_PROMOTION = msgspec.json.Decoder(Promotion)


def add_erasures(connection: Connection, thread: int, gone: Mapping[Position, Role]) -> None:
    """Remember where the messages stood, and who spoke."""
    for position, role in gone.items():
        values = {"thread": thread, "seq": position.seq, "message": position.message, "role": role}
        insert_new(connection, tables.erasure, values)


def erase_promotions(connection: Connection, thread: int, erased: Collection[int]) -> int:
    """Empty the statements that only erased entries said, delivered or not; how many."""
    column, count = tables.promotion.c, 0
    for row in connection.execute(select(tables.promotion).where(column.thread == thread)).all():
        promotion = _PROMOTION.decode(row.body)
        if row.status == "erased" or not all(source.seq in erased for source in promotion.sources):
            continue
        emptied = msgspec.structs.replace(promotion, text="", canon="")
        connection.execute(
            update(tables.promotion)
            .where(column.promotion_id == row.promotion_id)
            .values(status="erased", body=msgspec.json.encode(emptied), error=None)
        )
        count += 1
    return count
