"""Versions of statements as rows: ending the belief in them, carrying on what is left, renewing what has expired."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, exists, select, update

from threadmark.memory.model.assertion import Cardinality, Closing
from threadmark.memory.model.instants import FAR_US
from threadmark.memory.model.timeline import Placement, Succession, Version
from threadmark.memory.model.values import canonical
from threadmark.memory.store.pending import published, without_pending
from threadmark.memory.store.statements import IS_HELD, enqueue, insert_version, lock_attribute, rows, succeed
from threadmark.memory.store.tables import assertion, succession

__all__ = [
    "carry_on",
    "close",
    "copy_of",
    "has_expired",
    "held_versions",
    "make_way",
    "overlap",
    "superseded_by",
    "taken_meanwhile",
    "twin_of",
    "version_of",
    "widened",
]

Row = dict[str, Any]


def has_expired(row: Row, now: int) -> bool:
    """Whether a row may answer no question any more."""
    return bool(row["expires_at"] <= now)


def overlap(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two rows are true at the same time, for an instant at least."""
    return bool(one["valid_from"] < other["valid_to"] and other["valid_from"] < one["valid_to"])


def make_way(connection: Connection, expired: Sequence[Row], newer_id: str, at: int) -> None:
    """End what has expired where a new statement takes its place. A renewal supersedes nothing that could be undone."""
    if not expired:
        return
    close(connection, expired, Closing.SUPERSEDED, None, at)
    succeed(
        connection, expired[0]["tenant_id"], at, [(row["assertion_id"], newer_id, Succession.RENEWS) for row in expired]
    )


def widened(connection: Connection, row: Row, valid_from: int, now: int) -> Row:
    """The version that is believed from now on, true from `valid_from` too: it was observed earlier."""
    at = max(now, row["known_from"] + 1)
    again = copy_of(row, valid_from, row["valid_to"], at)
    close(connection, [row], Closing.SUPERSEDED, None, at)
    again["number"] = insert_version(connection, again)
    succeed(connection, row["tenant_id"], at, [(row["assertion_id"], again["assertion_id"], Succession.SUPERSEDES)])
    return again


def carry_on(connection: Connection, placement: Placement, held: dict[str, Row], newer_id: str, at: int) -> None:
    """End the belief in the versions that a placement closes, and believe what is left of them."""
    if not placement.closed:
        return
    tenant_id = held[placement.closed[0]]["tenant_id"]
    close(connection, [held[each] for each in placement.closed], Closing.SUPERSEDED, None, at)
    succeed(connection, tenant_id, at, [(each, newer_id, Succession.SUPERSEDES) for each in placement.closed])
    for part in placement.remainders:
        again = copy_of(held[part.of], part.valid_from, part.valid_to, at)
        insert_version(connection, again)
        succeed(connection, tenant_id, at, [(part.of, again["assertion_id"], Succession.REMAINS)])


def copy_of(row: Row, valid_from: int, valid_to: int, at: int) -> dict[str, Any]:
    """A later version of the same statement: same words, same sources, other times."""
    again = {key: value for key, value in row.items() if key not in {"number", "labels", "import_number"}}
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
    return without_pending(connection, rows(connection, query))


def twin_of(connection: Connection, row: Row) -> Row | None:
    """The same statement, held on another's word; only one is held without an end."""
    if row["valid_to"] != FAR_US:
        return None
    query = select(assertion).where(
        assertion.c.namespace_id == row["namespace_id"],
        assertion.c.digest == row["digest"],
        assertion.c.valid_to == FAR_US,
        IS_HELD,
    )
    return next(iter(without_pending(connection, rows(connection, query.with_for_update()))), None)


def superseded_by(connection: Connection, assertion_id: str) -> list[Row]:
    """What an assertion ended the belief in (`older_id`) and when (`at`), but for what was parted from it since."""
    parted = succession.alias()
    is_parted = exists().where(
        parted.c.newer_id == assertion_id,
        parted.c.older_id == succession.c.older_id,
        parted.c.kind == Succession.PARTED,
    )
    query = select(succession.c.older_id, succession.c.at).where(
        succession.c.newer_id == assertion_id,
        succession.c.kind == Succession.SUPERSEDES,
        published(succession),
        ~is_parted,
    )
    return rows(connection, query)


def taken_meanwhile(connection: Connection, row: Row, older: Sequence[Row], ending: set[str]) -> str | None:
    """The belief, other than those that are `ending`, that stands in the place of one that `row` superseded, where that
    is of another name and went its own way since: names were compared folded once. None where there is none."""
    for each in older:
        name = (each["namespace_id"], each["subject_key"], each["attribute_key"])
        if name == (row["namespace_id"], row["subject_key"], row["attribute_key"]):
            continue
        lock_attribute(connection, each["tenant_id"], *name)
        for held in held_versions(connection, *name):
            if overlap(held, each) and held["assertion_id"] not in ending:
                return str(held["assertion_id"])
    return None


def version_of(row: Row) -> Version:
    """The times of a row."""
    names = ("assertion_id", "valid_from", "valid_to", "known_from", "known_to")
    return Version(**{name: row[name] for name in names})
