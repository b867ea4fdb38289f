"""Units of work that remember: one draft, one transaction's worth of rows."""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, insert, select, update

from memory.admission import Hold, hold_for
from memory.assertion import Cardinality, Closing, Disposition, Verdict
from memory.conversation import thread_columns
from memory.instants import FAR_US
from memory.prepare import Prepared
from memory.provenance import Role, Trust
from memory.quarantine import is_held_back
from memory.rows import evidence_row, version_row
from memory.statements import (
    IS_HELD,
    IS_KNOWN,
    add_evidence,
    enqueue,
    insert_version,
    lock_attribute,
    namespace_id,
    rows,
    succeed,
)
from memory.tables import assertion, attribute, evidence
from memory.timeline import Placement, Version, cover, place
from memory.values import canonical

__all__ = ["REMAINS", "SUPERSEDES", "carry_on", "close", "declared", "held_versions", "remember", "version_of"]

Row = dict[str, Any]
#: Kinds of succession: the newer ended the belief in the older; the newer is what remained of the older.
SUPERSEDES, REMAINS = "supersedes", "remains"


def declared(connection: Connection, tenant_id: str, key: str, wanted: Cardinality | None) -> Cardinality:
    """How many values the attribute has at one instant: as first declared, else as wanted, else one."""
    found = connection.scalar(
        select(attribute.c.cardinality).where(attribute.c.tenant_id == tenant_id, attribute.c.attribute_key == key)
    )
    if found is not None:
        return Cardinality(found)
    chosen = wanted or Cardinality.ONE
    connection.execute(insert(attribute).values(tenant_id=tenant_id, attribute_key=key, cardinality=chosen))
    return chosen


def remember(connection: Connection, item: Prepared, cardinality: Cardinality | None) -> Verdict:
    """Hold the statement, or add its moment to the one that holds it already."""
    number = namespace_id(connection, item.tenant_id, item.draft.namespace)
    if item.origin_key is not None and (told := _told_before(connection, item, number)) is not None:
        return told
    held_back = is_held_back(connection, item.tenant_id, item.draft.origin)
    if cardinality is Cardinality.ONE:
        return _remember_one(connection, item, number, source_held=held_back)
    return _remember_any(connection, item, number, cardinality, source_held=held_back)


def _remember_any(
    connection: Connection, item: Prepared, number: int, cardinality: Cardinality | None, *, source_held: bool
) -> Verdict:
    hold = hold_for(item.draft.trust, item.draft.namespace, (), source_held=source_held)
    same = (
        select(assertion)
        .where(assertion.c.namespace_id == number, assertion.c.digest == item.digest)
        .where(IS_HELD if hold is Hold.NONE else IS_KNOWN & (assertion.c.hold != Hold.NONE))
        .limit(1)
    )
    if held := rows(connection, same):
        return _merge(connection, item, held[0])
    row = _new_row(connection, item, number, cardinality) | {"hold": hold}
    insert_version(connection, row)
    add_evidence(connection, evidence_row(item, row["root_id"], number, Role.SUPPORTS, item.now))
    return Verdict(
        assertion_id=row["assertion_id"],
        disposition=Disposition.QUARANTINED if hold else Disposition.ADDED,
        hold=hold,
    )


def _remember_one(connection: Connection, item: Prepared, number: int, *, source_held: bool) -> Verdict:
    subject_key, attribute_key = item.subject_key or "", item.attribute_key or ""
    lock_attribute(connection, item.tenant_id, number, subject_key, attribute_key)
    held = held_versions(connection, number, subject_key, attribute_key)
    versions = [version_of(row) for row in held]
    placement = place(versions, item.valid_from, item.valid_to)
    by_id = {row["assertion_id"]: row for row in held}
    covering = cover(versions, item.valid_from)
    if covering is not None and covering.valid_to >= placement.valid_to:
        row = by_id[covering.assertion_id]
        if row["digest"] == item.digest:
            return _merge(connection, item, row)
    overruled = [Trust(by_id[each]["trust"]) for each in placement.closed]
    hold = hold_for(item.draft.trust, item.draft.namespace, overruled, source_held=source_held)
    row = _new_row(connection, item, number, Cardinality.ONE)
    if hold:
        return _keep_apart(connection, item, row, hold)
    # Beliefs that end and begin in one microsecond would have been held for no time at all.
    at = max([item.now, *(row["known_from"] + 1 for row in held)])
    row |= {"valid_from": placement.valid_from, "valid_to": placement.valid_to, "known_from": at}
    carry_on(connection, placement, by_id, row["assertion_id"], at)
    insert_version(connection, row)
    role = Role.CORRECTS if placement.closed else Role.SUPPORTS
    add_evidence(connection, evidence_row(item, row["root_id"], number, role, at))
    return Verdict(
        assertion_id=row["assertion_id"],
        disposition=Disposition.SUPERSEDED if placement.closed else Disposition.ADDED,
        superseded=placement.closed,
    )


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
    """The versions of a single-valued attribute that are believed now, in the order of their validity."""
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
    )
    return rows(connection, query)


def version_of(row: Row) -> Version:
    """The times of a row."""
    names = ("assertion_id", "valid_from", "valid_to", "known_from", "known_to")
    return Version(**{name: row[name] for name in names})


def _keep_apart(connection: Connection, item: Prepared, row: dict[str, Any], hold: Hold) -> Verdict:
    insert_version(connection, row | {"hold": hold})
    add_evidence(connection, evidence_row(item, row["root_id"], row["namespace_id"], Role.SUPPORTS, item.now))
    return Verdict(assertion_id=row["assertion_id"], disposition=Disposition.QUARANTINED, hold=hold)


def _new_row(connection: Connection, item: Prepared, number: int, cardinality: Cardinality | None) -> dict[str, Any]:
    row = version_row(item, str(uuid4()), number, cardinality)
    return row | thread_columns(connection, row)


def _merge(connection: Connection, item: Prepared, row: Row) -> Verdict:
    """Add a moment to a statement that is held. Said again by somebody more trusted, it is trusted more and lasts."""
    add_evidence(connection, evidence_row(item, row["root_id"], row["namespace_id"], Role.SUPPORTS, item.now))
    order = list(Trust)
    if order.index(item.draft.trust) < order.index(Trust(row["trust"])):
        later = max(row["expires_at"], item.expires_at)
        connection.execute(
            update(assertion)
            .where(assertion.c.assertion_id == row["assertion_id"])
            .values(trust=item.draft.trust, expires_at=later)
        )
        enqueue(connection, row["tenant_id"], [(row["number"], row["namespace_id"])])
    return Verdict(
        assertion_id=row["assertion_id"],
        disposition=Disposition.QUARANTINED if row["hold"] else Disposition.DUPLICATE,
        hold=row["hold"],
    )


def _told_before(connection: Connection, item: Prepared, number: int) -> Verdict | None:
    """What a job that runs again is told: what became of this moment's statement the first time."""
    root_id = connection.scalar(
        select(evidence.c.root_id)
        .where(
            evidence.c.namespace_id == number,
            evidence.c.origin_key == item.origin_key,
            evidence.c.digest == item.digest,
            evidence.c.role.in_([Role.SUPPORTS, Role.CORRECTS]),
        )
        .limit(1)
    )
    if root_id is None:
        return None
    latest = (
        select(assertion.c.assertion_id, assertion.c.hold)
        .where(assertion.c.root_id == root_id)
        .order_by(assertion.c.known_to.desc(), assertion.c.number.desc())
        .limit(1)
    )
    if not (found := rows(connection, latest)):
        return None
    row = found[0]
    disposition = Disposition.QUARANTINED if row["hold"] else Disposition.DUPLICATE
    return Verdict(assertion_id=row["assertion_id"], disposition=disposition, hold=row["hold"])
