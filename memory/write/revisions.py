"""Units of work that take back what is believed, and what was taken back: retract, undo."""

from typing import Any

from sqlalchemy import Connection, select

from threadmark.memory.errors import AlreadyRetracted, CannotUndo, UnknownAssertion
from threadmark.memory.model.assertion import Cardinality, Closing
from threadmark.memory.model.instants import FAR_US
from threadmark.memory.model.provenance import Origin, Role, Trust
from threadmark.memory.model.scope import Scope
from threadmark.memory.model.timeline import Succession
from threadmark.memory.model.values import load
from threadmark.memory.store.pending import published
from threadmark.memory.store.rows import origin_columns
from threadmark.memory.store.statements import (
    IS_KNOWN,
    add_evidence,
    insert_version,
    lock_attribute,
    rows,
)
from threadmark.memory.store.tables import assertion, namespace, succession
from threadmark.memory.write.versions import (
    close,
    copy_of,
    has_expired,
    held_versions,
    make_way,
    overlap,
    superseded_by,
    taken_meanwhile,
    twin_of,
)

__all__ = ["lock", "note", "retract", "row_in", "undo"]

Row = dict[str, Any]


def _row_by_id(connection: Connection, tenant_id: str, assertion_id: str) -> Row:
    """The row of an assertion. Raises UnknownAssertion, also for another tenant's."""
    mine = (assertion.c.tenant_id == tenant_id) & (assertion.c.assertion_id == assertion_id)
    query = select(assertion).where(mine, published(assertion))
    found = rows(connection, query)
    if not found:
        raise UnknownAssertion(assertion_id)
    return found[0]


def row_in(connection: Connection, scope: Scope, assertion_id: str) -> Row:
    """The row of an assertion in the scope. Raises UnknownAssertion, also for one outside it."""
    row = _row_by_id(connection, scope.tenant_id, assertion_id)
    labels = connection.scalar(select(namespace.c.labels).where(namespace.c.namespace_id == row["namespace_id"]))
    if labels is None or not scope.covers(scope.tenant_id, tuple(load(labels))):
        raise UnknownAssertion(assertion_id)
    return row


def retract(
    connection: Connection, scope: Scope, assertion_id: str, *, reason: str, by: str, trust: Trust, now: int
) -> tuple[str, ...]:
    """End the belief in a statement, in all its versions still believed; their ids.

    Raises UnknownAssertion, and AlreadyRetracted when none is believed.
    """
    row = row_in(connection, scope, assertion_id)
    lock(connection, row)
    known = rows(
        connection, select(assertion).where(assertion.c.root_id == row["root_id"], IS_KNOWN, published(assertion))
    )
    if not known:
        raise AlreadyRetracted(assertion_id)
    at = max([now, *(each["known_from"] + 1 for each in known)])
    close(connection, known, Closing.RETRACTED, reason, at)
    note(connection, row, Role.RETRACTS, by=by, trust=trust, at=at)
    return tuple(each["assertion_id"] for each in known)


def undo(
    connection: Connection, scope: Scope, assertion_id: str, *, by: str, trust: Trust, now: int
) -> tuple[str, ...]:
    """Take back what this assertion did: its superseding of others, or the retraction of its statement. The ids that
    are believed again.

    Raises UnknownAssertion, and CannotUndo when it did neither, when a later change stands on it or when what would be
    believed again has expired.
    """
    row = row_in(connection, scope, assertion_id)
    lock(connection, row)
    latest = _latest(connection, row)
    if latest["closing"] == Closing.RETRACTED:
        return _restore_retracted(connection, latest, by=by, trust=trust, now=now)
    if row["closing"] == Closing.RETRACTED:
        raise CannotUndo(assertion_id, "it is believed again already")
    done = superseded_by(connection, assertion_id)
    if why := _why_not(connection, row, has_superseded=bool(done)):
        raise CannotUndo(assertion_id, why)
    older = [_row_by_id(connection, scope.tenant_id, each["older_id"]) for each in done]
    if all(has_expired(each, now) for each in older):
        raise CannotUndo(assertion_id, "what it superseded has expired meanwhile")
    remains = _remains(connection, assertion_id, [each["assertion_id"] for each in older], done[0]["at"])
    if taken_by := taken_meanwhile(connection, row, older, {each["assertion_id"] for each in remains}):
        raise CannotUndo(assertion_id, f"its place in time is taken by {taken_by!r}")
    at = max([now, *(each["known_from"] + 1 for each in [row, *remains])])
    close(connection, [row, *remains], Closing.UNDONE, None, at)
    restored = [copy_of(each, each["valid_from"], each["valid_to"], at) for each in older]
    for each in restored:
        insert_version(connection, each)
        note(connection, each, Role.RESTORES, by=by, trust=trust, at=at)
    return tuple(each["assertion_id"] for each in restored)


def _latest(connection: Connection, row: Row) -> Row:
    """The version of a row's statement that is believed now, else the one that was believed last."""
    query = select(assertion).where(assertion.c.root_id == row["root_id"], published(assertion))
    return rows(connection, query.order_by(assertion.c.known_to.desc(), assertion.c.number.desc()).limit(1))[0]


def _why_not(connection: Connection, row: Row, *, has_superseded: bool) -> str | None:
    """Why a supersession cannot be taken back."""
    if row["hold"]:
        return "it is kept apart"
    if row["closing"] == Closing.UNDONE:
        return "it was undone already"
    if row["closing"] == Closing.SUPERSEDED:
        newer = select(succession.c.newer_id).where(succession.c.older_id == row["assertion_id"])
        name = connection.scalar(newer.order_by(succession.c.number).limit(1))
        return f"it was superseded by {name!r}, which has to be undone first"
    return None if has_superseded else "it superseded nothing and was not retracted"


def _restore_retracted(connection: Connection, row: Row, *, by: str, trust: Trust, now: int) -> tuple[str, ...]:
    again = rows(
        connection,
        select(assertion).where(
            assertion.c.root_id == row["root_id"],
            assertion.c.known_to == row["known_to"],
            assertion.c.closing == Closing.RETRACTED,
            published(assertion),
        ),
    )
    again = [each for each in again if not has_expired(each, now)]
    if not again:
        raise CannotUndo(row["assertion_id"], "it has expired meanwhile")
    at = max(now, row["known_to"] + 1)
    if row["cardinality"] == Cardinality.ONE:
        believed = held_versions(connection, row["namespace_id"], row["subject_key"], row["attribute_key"])
        at = max([at, *(each["known_from"] + 1 for each in believed)])
        for each in again:
            for held in believed:
                if overlap(held, each) and not has_expired(held, now):
                    raise CannotUndo(row["assertion_id"], f"its place in time is taken by {held['assertion_id']!r}")
        expired = [each for each in believed if has_expired(each, now)]
    else:
        twins = [twin for each in again if not each["hold"] and (twin := twin_of(connection, each)) is not None]
        if any(not has_expired(twin, now) for twin in twins):
            raise CannotUndo(row["assertion_id"], "the same was stated again meanwhile")
        expired = twins
    restored = [copy_of(each, each["valid_from"], each["valid_to"], at) for each in again]
    make_way(connection, expired, restored[0]["assertion_id"], at)
    for each in restored:
        insert_version(connection, each)
    note(connection, row, Role.RESTORES, by=by, trust=trust, at=at)
    return tuple(each["assertion_id"] for each in restored)


def _remains(connection: Connection, assertion_id: str, older: list[str], at: int) -> list[Row]:
    """What the superseding left of the older versions. Raises CannotUndo when a later change touched it."""
    query = (
        select(assertion)
        .join(succession, succession.c.newer_id == assertion.c.assertion_id)
        .where(succession.c.older_id.in_(older), succession.c.kind == Succession.REMAINS, succession.c.at == at)
    )
    found = rows(connection, query)
    if any(each["closing"] == Closing.RETRACTED for each in found):
        raise CannotUndo(
            assertion_id, "what it left of the older statement was retracted, which has to be undone first"
        )
    if any(each["known_to"] != FAR_US or each["hold"] for each in found):
        raise CannotUndo(assertion_id, "a later change stands on it")
    return found


def lock(connection: Connection, row: Row) -> None:
    """Queue behind other writers of the row's attribute, or of the row, until the transaction ends."""
    if row["cardinality"] == Cardinality.ONE:
        lock_attribute(connection, row["tenant_id"], row["namespace_id"], row["subject_key"], row["attribute_key"])
    else:
        # The row itself is what its writers queue for; SQLite has one writer anyway.
        connection.execute(
            select(assertion.c.number).where(assertion.c.assertion_id == row["assertion_id"]).with_for_update()
        )


def note(connection: Connection, row: Row, role: Role, *, by: str, trust: Trust, at: int) -> None:
    """Append who changed the belief, as evidence beside the sources of the statement."""
    note = {
        "root_id": row["root_id"],
        "tenant_id": row["tenant_id"],
        "namespace_id": row["namespace_id"],
        "digest": row["digest"],
        "origin_key": None,
        "role": role,
        "trust": trust,
        "observed_at": at,
        "recorded_at": at,
        "asserted_by": by,
        "extractor": None,
        **origin_columns(Origin()),
    }
    add_evidence(connection, [note])
