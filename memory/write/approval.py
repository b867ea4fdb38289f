"""Units of work that let what was kept apart be believed: approve one assertion, release a source."""

from typing import Any

from sqlalchemy import Connection, select, update

from threadmark.memory.errors import AlreadyRetracted, UnknownQuarantine
from threadmark.memory.model.admission import Hold
from threadmark.memory.model.assertion import Cardinality, Closing
from threadmark.memory.model.instants import FAR_US
from threadmark.memory.model.provenance import Origin, Role, Trust
from threadmark.memory.model.scope import Scope
from threadmark.memory.model.timeline import Succession, place
from threadmark.memory.store.pending import published
from threadmark.memory.store.statements import enqueue, rows, succeed
from threadmark.memory.store.tables import assertion, evidence, quarantine
from threadmark.memory.write.quarantine import held_selectors, hold_alone, is_named
from threadmark.memory.write.revisions import lock, note, row_in
from threadmark.memory.write.versions import (
    carry_on,
    close,
    has_expired,
    held_versions,
    make_way,
    twin_of,
    version_of,
)

__all__ = ["approve", "release_source"]

Row = dict[str, Any]


def approve(connection: Connection, scope: Scope, assertion_id: str, *, by: str, trust: Trust, now: int) -> None:
    """Let an assertion that was kept apart be believed from now on, and an untrusted one last.

    Raises UnknownAssertion, and AlreadyRetracted when it was given up meanwhile.
    """
    row = row_in(connection, scope, assertion_id)
    lock(connection, row)
    if row["known_to"] != FAR_US:
        raise AlreadyRetracted(assertion_id)
    if row["hold"]:
        _admit(connection, row | {"expires_at": FAR_US}, now, now)
    _update_row(connection, row, {"expires_at": FAR_US})
    note(connection, row, Role.CONFIRMS, by=by, trust=trust, at=now)


def release_source(connection: Connection, tenant_id: str, quarantine_id: str, now: int) -> int:
    """End a quarantine: how many assertions may be recalled again. Zero for one that has ended already.

    Raises UnknownQuarantine.
    """
    hold_alone(connection, tenant_id)
    ended = connection.execute(
        update(quarantine)
        .where(
            quarantine.c.tenant_id == tenant_id,
            quarantine.c.quarantine_id == quarantine_id,
            quarantine.c.released_at == FAR_US,
        )
        .values(released_at=now)
    )
    if ended.rowcount == 0:
        mine = (quarantine.c.tenant_id == tenant_id) & (quarantine.c.quarantine_id == quarantine_id)
        if connection.scalar(select(quarantine.c.number).where(mine)) is None:
            raise UnknownQuarantine(quarantine_id)
        return 0
    held_back = rows(
        connection,
        select(assertion)
        .where(assertion.c.tenant_id == tenant_id, assertion.c.hold == Hold.SOURCE, published(assertion))
        .order_by(assertion.c.known_from, assertion.c.number),
    )
    # What has expired is left to the sweep: it would take the place of what is believed, and answer nothing.
    lasting = [row for row in held_back if not has_expired(row, now)]
    selectors = held_selectors(connection, tenant_id)
    free = [row for row in lasting if not _is_held_back(connection, row, selectors)]
    for row in free:
        lock(connection, row)
        if row["known_to"] == FAR_US:
            _admit(connection, row, row["known_from"], now)
        else:
            _update_row(connection, row, {"hold": Hold.NONE})
    return sum(row["known_to"] == FAR_US for row in free)


def _admit(connection: Connection, row: Row, known_from: int, now: int) -> None:
    """Believe a row that was kept apart, in its place among those believed now."""
    if row["cardinality"] != Cardinality.ONE:
        twin = twin_of(connection, row)
        if twin is not None and not has_expired(twin, now):
            # Another write stated the same meanwhile: the two are one statement, and this one ends in the other.
            close(connection, [row], Closing.SUPERSEDED, None, max(known_from, row["known_from"]) + 1)
            _update_row(connection, row, {"hold": Hold.NONE})
            _update_row(connection, twin, {"expires_at": max(twin["expires_at"], row["expires_at"])})
            _join(connection, row["root_id"], twin["root_id"])
            succeed(
                connection,
                row["tenant_id"],
                known_from,
                [(row["assertion_id"], twin["assertion_id"], Succession.SUPERSEDES)],
            )
            return
        if twin is not None:
            make_way(connection, [twin], row["assertion_id"], max(now, twin["known_from"] + 1))
        _update_row(connection, row, {"hold": Hold.NONE, "known_from": known_from})
        return
    believed = held_versions(connection, row["namespace_id"], row["subject_key"], row["attribute_key"])
    held = [each for each in believed if not has_expired(each, now)]
    placement = place([version_of(each) for each in held], row["valid_from"], _own_end(row))
    at = max([known_from, *(each["known_from"] + 1 for each in believed)])
    make_way(connection, [each for each in believed if has_expired(each, now)], row["assertion_id"], at)
    carry_on(connection, placement, {each["assertion_id"]: each for each in held}, row["assertion_id"], at)
    _update_row(connection, row, {"hold": Hold.NONE, "known_from": at, "valid_to": placement.valid_to})


def _join(connection: Connection, root_id: str, into: str) -> None:
    """Give a statement the versions and sources of another: they would go with the one that expires first."""
    for table in (assertion, evidence):
        connection.execute(update(table).where(table.c.root_id == root_id).values(root_id=into))


def _own_end(row: Row) -> int | None:
    return None if row["valid_to"] == FAR_US else row["valid_to"]


def _is_held_back(connection: Connection, row: Row, selectors: list[dict[str, Any]]) -> bool:
    origins = rows(connection, select(evidence).where(evidence.c.root_id == row["root_id"]))
    names = ("thread_ref", "run_ref", "seq", "message_ref", "actor")
    return any(is_named(selectors, Origin(**{name: each[name] for name in names})) for each in origins)


def _update_row(connection: Connection, row: Row, values: Row) -> None:
    """Change what may change of a row, and queue its index entry."""
    connection.execute(update(assertion).where(assertion.c.assertion_id == row["assertion_id"]).values(**values))
    enqueue(connection, row["tenant_id"], [(row["number"], row["namespace_id"])])
