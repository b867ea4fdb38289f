"""A model's replies about single chunks, kept until their compaction ends."""

from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection, delete, select

from threadmark.compaction import tables
from threadmark.compaction.model.records import Compaction
from threadmark.compaction.summary import SummaryReply
from threadmark.db.portable import insert_new

__all__ = ["add_reply", "forget_replies", "read_replies"]

_REPLY = msgspec.json.Decoder(SummaryReply)


def read_replies(connection: Connection, compaction_id: str) -> dict[str, SummaryReply]:
    """The replies that earlier attempts got, by the key of their prompt."""
    rows = connection.execute(select(tables.reply).where(tables.reply.c.compaction_id == compaction_id))
    return {row.key: _REPLY.decode(row.reply) for row in rows}


def add_reply(connection: Connection, compaction: Compaction, key: str, reply: SummaryReply) -> bool:
    """Keep a reply; of two for the same prompt the first stays. Whether this is the first."""
    row = insert_new(
        connection,
        tables.reply,
        {
            "compaction_id": compaction.compaction_id,
            "key": key,
            "thread": compaction.thread,
            "reply": msgspec.json.encode(reply),
        },
    )
    return row is not None


def forget_replies(connection: Connection, compaction_ids: Sequence[str]) -> None:
    """Remove the replies of compactions that have ended."""
    connection.execute(delete(tables.reply).where(tables.reply.c.compaction_id.in_(list(compaction_ids))))
