"""Versions of statements as rows: ending the belief in them, carrying on what is left, renewing what has expired."""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, select, update

from threadmark.memory.model.assertion import Cardinality, Closing
from threadmark.memory.model.instants import FAR_US
from threadmark.memory.model.timeline import Placement, Version
from threadmark.memory.model.values import canonical
from threadmark.memory.store.statements import IS_HELD, enqueue, insert_version, rows, succeed
from threadmark.memory.store.tables import assertion

__all__ = [
    "REMAINS",
    "RENEWS",
    "SUPERSEDES",
    "carry_on",
    "close",
    "copy_of",
    "has_expired",
    "held_versions",
    "make_way",
    "version_of",
    "widened",
]

Row = dict[str, Any]
#: Kinds of succession: the newer ended the belief in the older; the newer is what remained of the older; the older had
#: expired before the newer was said.
SUPERSEDES, REMAINS, RENEWS = "supersedes", "remains", "renews"


def has_expired(row: Row, now: int) -> bool:
    """Whether a row may answer no question any more."""
    return bool(row["expires_at"] <= now)


def make_way(connection: Connection, expired: Sequence[Row], newer_id: str, at: int) -> None:
    """End what has expired where a new statement takes its place. A renewal supersedes nothing that could be undone."""
    if not expired:
        return
    close(connection, expired, Closing.SUPERSEDED, None, at)
    succeed(connection, expired[0]["tenant_id"], at, [(row["assertion_id"], newer_id, RENEWS) for row in expired])


def widened(connection: Connection, row: Row, valid_from: int, now: int) -> Row:
    """The version that is believed from now on, true from `valid_from` too: somebody observed it earlier."""
    at = max(now, row["known_from"] + 1)
    again = copy_of(row, valid_from, row["valid_to"], at)
    close(connection, [row], Closing.SUPERSEDED, None, at)
    again["number"] = insert_version(connection, again)
    succeed(connection, row["tenant_id"], at, [(row["assertion_id"], again["assertion_id"], SUPERSEDES)])
    return again


def carry_on(connection: Connection, placement: Placement, held: dict[str, Row], newer_id: str, at: int) -> None:
    """End the belief in the versions that a placement closes, and believe what is left of them."""
    if not placement.closed:
        return
    tenant_id = held[placement.closed[0]]["tenant_id"]
    close(connection, [held[each] for each in placement.closed], Closing.SUPERSEDED, None, at)
    succeed(connection, tenant_id, at, [(each, newer_id, SUPERSEDES) for each in placement.closed])
    for part in placement.remainders:
        again = copy_of(held[part.of], part.valid_from, part.valid_to, at)
        insert_version(connection, again)
        succeed(connection, tenant_id, at, [(part.of, again["assertion_id"], REMAINS)])


def copy_of(row: Row, valid_from: int, valid_to: int, at: int) -> dict[str, Any]:
    """A later version of the same statement: same words, same sources, other times."""
    again = {key: value for key, value in row.items() if key not in {"number", "labels"}}
    return again | {
        "assertion_id": str(uuid4()),
        "valid_from": valid_from,
        "valid_to": valid_to,
        "known_from": at,
        "known_to": FAR_US,
        "closing": None,
        "reason": None,
    }


def close(connection: Connection, ended: Sequence[Row], closing: Closing, reason: str | None, at: int) -> None:
    """End the belief in versions, and queue their index entries."""
    ids = [row["assertion_id"] for row in ended]
    why = None if reason is None else canonical(reason)
    connection.execute(
        update(assertion).where(assertion.c.assertion_id.in_(ids)).values(known_to=at, closing=closing, reason=why)
    )
    for row in ended:
        enqueue(connection, row["tenant_id"], [(row["number"], row["namespace_id"])])


def held_versions(connection: Connection, number: int, subject_key: str, attribute_key: str) -> list[Row]:
    """The versions of a single-valued attribute that are believed now, in the order of their validity. Some may have
    expired."""
    query = (
        select(assertion)
        .where(
            assertion.c.namespace_id == number,
            assertion.c.subject_key == subject_key,
            assertion.c.attribute_key == attribute_key,
            assertion.c.cardinality == Cardinality.ONE,
            IS_HELD,
        )
        .order_by(assertion.c.valid_from)
        # A sweep of another process that would remove them waits, or has removed them.
        .with_for_update()
    )
    return rows(connection, query)


def version_of(row: Row) -> Version:
    """The times of a row."""
    names = ("assertion_id", "valid_from", "valid_to", "known_from", "known_to")
    return Version(**{name: row[name] for name in names})
