"""A statement's place in its conversation: the turn before it, and the sitting it belongs to."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, bindparam, select

from threadmark.memory.store.pending import published
from threadmark.memory.store.tables import assertion

__all__ = ["SITTING_GAP", "Conversations"]

#: A pause after which people start a new conversation in the same thread.
SITTING_GAP = timedelta(hours=4)
_GAP_US = int(SITTING_GAP.total_seconds()) * 1_000_000
_LAST = (
    select(assertion.c.assertion_id, assertion.c.session, assertion.c.observed_at)
    .where(
        assertion.c.namespace_id == bindparam("namespace_id"),
        assertion.c.thread_ref == bindparam("thread_ref"),
        assertion.c.kind == bindparam("kind"),
        # Later versions of an old statement are not turns of the conversation.
        assertion.c.assertion_id == assertion.c.root_id,
        published(assertion),
    )
    .order_by(assertion.c.number.desc())
    .limit(1)
)


class Conversations:
    """The last turn of each conversation, as one transaction goes on."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._last: dict[tuple[Any, ...], tuple[str, str | None, int] | None] = {}

    def place(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """`previous_id` and `session` of a row that is about to be inserted; empty for one from no thread."""
        if row["thread_ref"] is None:
            return {}
        key = (row["namespace_id"], row["thread_ref"], row["kind"])
        if key not in self._last:
            values = {"namespace_id": key[0], "thread_ref": key[1], "kind": key[2]}
            found = self._connection.execute(_LAST, values).first()
            self._last[key] = None if found is None else (found[0], found[1], found[2])
        last = self._last[key]
        if last is None or abs(row["observed_at"] - last[2]) > _GAP_US:
            placed = {"session": row["assertion_id"]}
        else:
            placed = {"session": last[1], "previous_id": last[0]}
        self._last[key] = (row["assertion_id"], placed["session"], row["observed_at"])
        return placed
