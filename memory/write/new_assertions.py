"""Units of work that remember: one draft, one transaction's worth of rows."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, insert, select, update

from threadmark.memory.model.admission import Hold, hold_for
from threadmark.memory.model.assertion import Cardinality, Closing, Disposition, Verdict
from threadmark.memory.model.instants import FAR_US
from threadmark.memory.model.provenance import Role, Trust
from threadmark.memory.model.timeline import Placement, Version, cover, place
from threadmark.memory.model.values import canonical
from threadmark.memory.store.rows import evidence_row, version_row
from threadmark.memory.store.statements import (
    IS_HELD,
    add_evidence,
    enqueue,
    insert_version,
    lock_attribute,
    namespace_id,
    raise_trust,
    rows,
    succeed,
    told_before,
)
from threadmark.memory.store.tables import assertion, attribute
from threadmark.memory.write.append_only import remember_plain
from threadmark.memory.write.conversation import Conversations
from threadmark.memory.write.preparation import Prepared
from threadmark.memory.write.quarantine import held_selectors, is_named

__all__ = [
    "REMAINS",
    "SUPERSEDES",
    "carry_on",
    "close",
    "declared",
    "held_versions",
    "remember",
    "remember_one",
    "version_of",
]

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


def remember(connection: Connection, items: Sequence[tuple[Prepared, Cardinality | None]]) -> list[Verdict]:
    """Hold each statement, or add its moment to the one that holds it already; in their order."""
    verdicts: list[Verdict] = []
    for is_one, run in groupby(items, key=lambda each: each[1] is Cardinality.ONE):
        if is_one:
            verdicts += [remember_one(connection, item) for item, _ in run]
        else:
            verdicts += remember_plain(connection, run)
    return verdicts


def remember_one(connection: Connection, item: Prepared) -> Verdict:
    """Place a statement about a single-valued attribute among those that are believed."""
    number = namespace_id(connection, item.tenant_id, item.draft.namespace)
    subject_key, attribute_key = item.subject_key or "", item.attribute_key or ""
    lock_attribute(connection, item.tenant_id, number, subject_key, attribute_key)
    if item.origin_key is not None:
        told = told_before(connection, number, item.origin_key, item.digest)
        if told is not None:
            return told
    source_held = is_named(held_selectors(connection, item.tenant_id), item.draft.origin)
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
    add_evidence(connection, [evidence_row(item, row["root_id"], number, role, at)])
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
    add_evidence(connection, [evidence_row(item, row["root_id"], row["namespace_id"], Role.SUPPORTS, item.now)])
    return Verdict(assertion_id=row["assertion_id"], disposition=Disposition.QUARANTINED, hold=hold)


def _new_row(connection: Connection, item: Prepared, number: int, cardinality: Cardinality | None) -> dict[str, Any]:
    row = version_row(item, str(uuid4()), number, cardinality)
    return row | Conversations(connection).place(row)


def _merge(connection: Connection, item: Prepared, row: Row) -> Verdict:
    """Add a moment to a statement that is held. Said again by somebody more trusted, it is trusted more and lasts."""
    add_evidence(connection, [evidence_row(item, row["root_id"], row["namespace_id"], Role.SUPPORTS, item.now)])
    order = list(Trust)
    if order.index(item.draft.trust) < order.index(Trust(row["trust"])):
        raise_trust(connection, row["assertion_id"], item.draft.trust, item.expires_at)
    return Verdict(
        assertion_id=row["assertion_id"],
        disposition=Disposition.QUARANTINED if row["hold"] else Disposition.DUPLICATE,
        hold=row["hold"],
    )
