"""Raw turns: the turn that was kept of a message, beside what was extracted from the same message.

A turn has no subject of its own. An erasure by subject erases the words of the message too, or recall could return
them word for word.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, and_, or_, select

from threadmark.memory.model.assertion import TURN
from threadmark.memory.store.statements import chunks
from threadmark.memory.store.tables import assertion, evidence

__all__ = ["turns_of", "with_turns"]


def with_turns(connection: Connection, roots: Sequence[str]) -> list[str]:
    """The statements with these roots, and the turns of the messages that they come from."""
    found = set(roots)
    for part in chunks(list(roots)):
        found.update(connection.scalars(turns_of(part)))
    return sorted(found)


def turns_of(roots: Any) -> Any:
    """The roots of turns with a source in the same message as one of `roots` (a list, or a query of one column)."""
    source, kept = evidence.alias(), evidence.alias()
    same_message = or_(source.c.message_ref == kept.c.message_ref, source.c.seq == kept.c.seq)
    return (
        select(kept.c.root_id)
        .join(
            source,
            and_(source.c.tenant_id == kept.c.tenant_id, source.c.thread_ref == kept.c.thread_ref, same_message),
        )
        .join(assertion, assertion.c.root_id == kept.c.root_id)
        .where(source.c.root_id.in_(roots), assertion.c.kind == TURN)
        .distinct()
    )
