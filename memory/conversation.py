"""A statement's place in its conversation: the turn before it, and the sitting it belongs to."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, select

from memory.tables import assertion

__all__ = ["SITTING_GAP", "thread_columns"]

#: A pause after which people start a new conversation in the same thread.
SITTING_GAP = timedelta(hours=4)
_GAP_US = int(SITTING_GAP.total_seconds()) * 1_000_000


def thread_columns(connection: Connection, row: Mapping[str, Any]) -> dict[str, Any]:
    """`previous_id` and `session` of a row that is about to be inserted; empty for one from no thread."""
    if row["thread_ref"] is None:
        return {}
    last = (
        select(assertion.c.assertion_id, assertion.c.session, assertion.c.observed_at)
        .where(
            assertion.c.namespace_id == row["namespace_id"],
            assertion.c.thread_ref == row["thread_ref"],
            assertion.c.kind == row["kind"],
            # Later versions of an old statement are not turns of the conversation.
            assertion.c.assertion_id == assertion.c.root_id,
        )
        .order_by(assertion.c.number.desc())
        .limit(1)
    )
    before = connection.execute(last).first()
    if before is None or abs(row["observed_at"] - before.observed_at) > _GAP_US:
        return {"session": row["assertion_id"]}
    return {"session": before.session, "previous_id": before.assertion_id}
