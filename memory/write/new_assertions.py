"""Units of work that remember: one draft, one transaction's worth of rows."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection

from threadmark.memory.model.admission import Hold, hold_for
from threadmark.memory.model.assertion import Cardinality, Disposition, Verdict
from threadmark.memory.model.prepared import Prepared
from threadmark.memory.model.provenance import Role, Trust
from threadmark.memory.model.timeline import cover, place
from threadmark.memory.store.rows import evidence_row, version_row
from threadmark.memory.store.statements import (
    add_evidence,
    earlier_verdict,
    insert_version,
    is_recorded,
    lock_attribute,
    namespace_id,
    strengthened,
)
from threadmark.memory.write.append_only import remember_plain
from threadmark.memory.write.conversation import Conversations
from threadmark.memory.write.quarantine import held_selectors, is_named, queue_behind_holds
from threadmark.memory.write.versions import carry_on, has_expired, held_versions, make_way, version_of

__all__ = [
    "remember",
    "remember_one",
]

Row = dict[str, Any]


def remember(connection: Connection, items: Sequence[tuple[Prepared, Cardinality | None]]) -> list[Verdict]:
    """Hold each statement, or add its moment to the one that holds it already; in their order."""
    queue_behind_holds(connection, items[0][0].tenant_id)
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
    is_repeated = is_recorded(connection, number, item)
    if is_repeated and (verdict := earlier_verdict(connection, number, item)) is not None:
        return verdict
    source_held = is_named(held_selectors(connection, item.tenant_id), item.draft.origin)
    believed = held_versions(connection, number, subject_key, attribute_key)
    expired = [row for row in believed if has_expired(row, item.now)]
    held = [row for row in believed if not has_expired(row, item.now)]
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
        return _keep_apart(connection, item, row, hold, once=not is_repeated)
    # Beliefs that end and begin in one microsecond would have been held for no time at all.
    at = max([item.now, *(each["known_from"] + 1 for each in believed)])
    row |= {"valid_from": placement.valid_from, "valid_to": placement.valid_to, "known_from": at}
    # The same statement goes on under its root, with the sources that it had: they go with whatever lasts longest.
    row["root_id"] = next((each["root_id"] for each in expired if each["digest"] == item.digest), row["root_id"])
    make_way(connection, expired, row["assertion_id"], at)
    carry_on(connection, placement, by_id, row["assertion_id"], at)
    insert_version(connection, row)
    if not is_repeated or row["root_id"] == row["assertion_id"]:
        role = Role.CORRECTS if placement.closed else Role.SUPPORTS
        source = evidence_row(item, row["root_id"], number, role, at)
        add_evidence(connection, [source], once=not is_repeated)
    return Verdict(
        assertion_id=row["assertion_id"],
        disposition=Disposition.SUPERSEDED if placement.closed else Disposition.ADDED,
        superseded=placement.closed,
    )


def _keep_apart(connection: Connection, item: Prepared, row: dict[str, Any], hold: Hold, *, once: bool) -> Verdict:
    insert_version(connection, row | {"hold": hold})
    source = evidence_row(item, row["root_id"], row["namespace_id"], Role.SUPPORTS, item.now)
    add_evidence(connection, [source], once=once)
    return Verdict(assertion_id=row["assertion_id"], disposition=Disposition.QUARANTINED, hold=hold)


def _new_row(connection: Connection, item: Prepared, number: int, cardinality: Cardinality | None) -> dict[str, Any]:
    row = version_row(item, str(uuid4()), number, cardinality)
    return row | Conversations(connection).place(row)


def _merge(connection: Connection, item: Prepared, row: Row) -> Verdict:
    """Add a moment to a statement that is held. Said again, it lasts as long as the word that lasts longest."""
    add_evidence(connection, [evidence_row(item, row["root_id"], row["namespace_id"], Role.SUPPORTS, item.now)])
    strengthened(connection, row, item)
    return Verdict(
        assertion_id=row["assertion_id"],
        disposition=Disposition.QUARANTINED if row["hold"] else Disposition.DUPLICATE,
        hold=row["hold"],
    )
