"""Units of work that change what is believed: retract, undo, approve, release."""

from typing import Any

from sqlalchemy import Connection, select, update

from threadmark.memory.errors import AlreadyRetracted, CannotUndo, UnknownAssertion, UnknownQuarantine
from threadmark.memory.model.admission import Hold
from threadmark.memory.model.assertion import Cardinality, Closing
from threadmark.memory.model.instants import FAR_US
from threadmark.memory.model.provenance import Origin, Role, Trust
from threadmark.memory.model.timeline import place
from threadmark.memory.store.rows import origin_columns
from threadmark.memory.store.statements import (
    IS_HELD,
    IS_KNOWN,
    add_evidence,
    enqueue,
    insert_version,
    lock_attribute,
    rows,
    succeed,
)
from threadmark.memory.store.tables import assertion, evidence, quarantine, succession
from threadmark.memory.versions import (
    REMAINS,
    SUPERSEDES,
    carry_on,
    close,
    copy_of,
    has_expired,
    held_versions,
    make_way,
    version_of,
)
from threadmark.memory.write.quarantine import held_selectors, is_named

__all__ = ["approve", "release_source", "retract", "row_by_id", "undo"]

Row = dict[str, Any]


def row_by_id(connection: Connection, tenant_id: str, assertion_id: str) -> Row:
    """The row of an assertion. Raises UnknownAssertion, also for another tenant's."""
    query = select(assertion).where(assertion.c.tenant_id == tenant_id, assertion.c.assertion_id == assertion_id)
    found = rows(connection, query)
    if not found:
        raise UnknownAssertion(assertion_id)
    return found[0]


def retract(
    connection: Connection, tenant_id: str, assertion_id: str, *, reason: str, by: str, trust: Trust, now: int
) -> tuple[str, ...]:
    """End the belief in a statement, in all its versions still believed; their ids.

    Raises UnknownAssertion, and AlreadyRetracted when none is believed.
    """
    row = row_by_id(connection, tenant_id, assertion_id)
    _lock(connection, row)
    known = rows(connection, select(assertion).where(assertion.c.root_id == row["root_id"], IS_KNOWN))
    if not known:
        raise AlreadyRetracted(assertion_id)
    at = max([now, *(each["known_from"] + 1 for each in known)])
    close(connection, known, Closing.RETRACTED, reason, at)
    _note(connection, row, Role.RETRACTS, by=by, trust=trust, at=at)
    return tuple(each["assertion_id"] for each in known)


def undo(
    connection: Connection, tenant_id: str, assertion_id: str, *, by: str, trust: Trust, now: int
) -> tuple[str, ...]:
    """Take back what this assertion did: its superseding of others, or the retraction of its statement. The ids that
    are believed again.

    Raises UnknownAssertion, and CannotUndo when it did neither, when a later change stands on it or when what would be
    believed again has expired.
    """
    row = row_by_id(connection, tenant_id, assertion_id)
    _lock(connection, row)
    latest = _latest(connection, row)
    if latest["closing"] == Closing.RETRACTED:
        return _restore_retracted(connection, latest, by=by, trust=trust, now=now)
    if row["closing"] == Closing.RETRACTED:
        raise CannotUndo(assertion_id, "it is believed again already")
    done = rows(
        connection,
        select(succession.c.older_id, succession.c.at).where(
            succession.c.newer_id == assertion_id, succession.c.kind == SUPERSEDES
        ),
    )
    if why := _why_not(connection, row, has_superseded=bool(done)):
        raise CannotUndo(assertion_id, why)
    older = [row_by_id(connection, tenant_id, each["older_id"]) for each in done]
    if all(has_expired(each, now) for each in older):
        raise CannotUndo(assertion_id, "what it superseded has expired meanwhile")
    remains = _remains(connection, assertion_id, [each["assertion_id"] for each in older], done[0]["at"])
    at = max([now, *(each["known_from"] + 1 for each in [row, *remains])])
    close(connection, [row, *remains], Closing.UNDONE, None, at)
    restored = [copy_of(each, each["valid_from"], each["valid_to"], at) for each in older]
    for each in restored:
        insert_version(connection, each)
        _note(connection, each, Role.RESTORES, by=by, trust=trust, at=at)
    return tuple(each["assertion_id"] for each in restored)


def approve(connection: Connection, tenant_id: str, assertion_id: str, *, by: str, trust: Trust, now: int) -> None:
    """Let an assertion that was kept apart be believed from now on, and an untrusted one last.

    Raises UnknownAssertion, and AlreadyRetracted when it was given up meanwhile.
    """
    row = row_by_id(connection, tenant_id, assertion_id)
    _lock(connection, row)
    if row["known_to"] != FAR_US:
        raise AlreadyRetracted(assertion_id)
    if row["hold"]:
        _admit(connection, row | {"expires_at": FAR_US}, now, now)
    update_row(connection, row, {"expires_at": FAR_US})
    _note(connection, row, Role.CONFIRMS, by=by, trust=trust, at=now)


def release_source(connection: Connection, tenant_id: str, quarantine_id: str, now: int) -> int:
    """End a quarantine: how many assertions may be recalled again. Zero for one that has ended already.

    Raises UnknownQuarantine.
    """
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
        .where(assertion.c.tenant_id == tenant_id, assertion.c.hold == Hold.SOURCE)
        .order_by(assertion.c.known_from, assertion.c.number),
    )
    # What has expired is left to the sweep: it would take the place of what is believed, and answer nothing.
    lasting = [row for row in held_back if not has_expired(row, now)]
    free = [row for row in lasting if not _still_held_back(connection, row)]
    for row in free:
        _lock(connection, row)
        if row["known_to"] == FAR_US:
            _admit(connection, row, row["known_from"], now)
        else:
            update_row(connection, row, {"hold": Hold.NONE})
    return sum(row["known_to"] == FAR_US for row in free)


def update_row(connection: Connection, row: Row, values: Row) -> None:
    """Change what may change of a row, and queue its index entry."""
    connection.execute(update(assertion).where(assertion.c.assertion_id == row["assertion_id"]).values(**values))
    enqueue(connection, row["tenant_id"], [(row["number"], row["namespace_id"])])


def _admit(connection: Connection, row: Row, known_from: int, now: int) -> None:
    """Believe a row that was kept apart, in its place among those believed now."""
    if row["cardinality"] != Cardinality.ONE:
        twin = _twin(connection, row)
        if twin is not None and not has_expired(twin, now):
            # Said again meanwhile by somebody else: the two are one statement, and this one ends in the other.
            close(connection, [row], Closing.SUPERSEDED, None, max(known_from, row["known_from"]) + 1)
            update_row(connection, row, {"hold": Hold.NONE})
            update_row(connection, twin, {"expires_at": max(twin["expires_at"], row["expires_at"])})
            _join(connection, row["root_id"], twin["root_id"])
            succeed(connection, row["tenant_id"], known_from, [(row["assertion_id"], twin["assertion_id"], SUPERSEDES)])
            return
        if twin is not None:
            make_way(connection, [twin], row["assertion_id"], max(now, twin["known_from"] + 1))
        update_row(connection, row, {"hold": Hold.NONE, "known_from": known_from})
        return
    believed = held_versions(connection, row["namespace_id"], row["subject_key"], row["attribute_key"])
    held = [each for each in believed if not has_expired(each, now)]
    placement = place([version_of(each) for each in held], row["valid_from"], _own_end(row))
    at = max([known_from, *(each["known_from"] + 1 for each in believed)])
    make_way(connection, [each for each in believed if has_expired(each, now)], row["assertion_id"], at)
    carry_on(connection, placement, {each["assertion_id"]: each for each in held}, row["assertion_id"], at)
    update_row(connection, row, {"hold": Hold.NONE, "known_from": at, "valid_to": placement.valid_to})


def _twin(connection: Connection, row: Row) -> Row | None:
    """The same statement, held on another's word; only one is held without an end."""
    if row["valid_to"] != FAR_US:
        return None
    query = select(assertion).where(
        assertion.c.namespace_id == row["namespace_id"],
        assertion.c.digest == row["digest"],
        assertion.c.valid_to == FAR_US,
        IS_HELD,
    )
    return next(iter(rows(connection, query.with_for_update())), None)


def _join(connection: Connection, root_id: str, into: str) -> None:
    """Give a statement the versions and sources of another: they would go with the one that expires first."""
    for table in (assertion, evidence):
        connection.execute(update(table).where(table.c.root_id == root_id).values(root_id=into))


def _own_end(row: Row) -> int | None:
    return None if row["valid_to"] == FAR_US else row["valid_to"]


def _latest(connection: Connection, row: Row) -> Row:
    """The version of a row's statement that is believed now, else the one that was believed last."""
    query = select(assertion).where(assertion.c.root_id == row["root_id"])
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
                overlaps = held["valid_from"] < each["valid_to"] and each["valid_from"] < held["valid_to"]
                if overlaps and not has_expired(held, now):
                    raise CannotUndo(row["assertion_id"], f"its place in time is taken by {held['assertion_id']!r}")
        expired = [each for each in believed if has_expired(each, now)]
    else:
        twins = [twin for each in again if not each["hold"] and (twin := _twin(connection, each)) is not None]
        if any(not has_expired(twin, now) for twin in twins):
            raise CannotUndo(row["assertion_id"], "somebody said the same again meanwhile")
        expired = twins
    restored = [copy_of(each, each["valid_from"], each["valid_to"], at) for each in again]
    make_way(connection, expired, restored[0]["assertion_id"], at)
    for each in restored:
        insert_version(connection, each)
    _note(connection, row, Role.RESTORES, by=by, trust=trust, at=at)
    return tuple(each["assertion_id"] for each in restored)


def _remains(connection: Connection, assertion_id: str, older: list[str], at: int) -> list[Row]:
    """What the superseding left of the older versions. Raises CannotUndo when a later change touched it."""
    query = (
        select(assertion)
        .join(succession, succession.c.newer_id == assertion.c.assertion_id)
        .where(succession.c.older_id.in_(older), succession.c.kind == REMAINS, succession.c.at == at)
    )
    found = rows(connection, query)
    if any(each["closing"] == Closing.RETRACTED for each in found):
        raise CannotUndo(
            assertion_id, "what it left of the older statement was retracted, which has to be undone first"
        )
    if any(each["known_to"] != FAR_US or each["hold"] for each in found):
        raise CannotUndo(assertion_id, "a later change stands on it")
    return found


def _lock(connection: Connection, row: Row) -> None:
    if row["cardinality"] == Cardinality.ONE:
        lock_attribute(connection, row["tenant_id"], row["namespace_id"], row["subject_key"], row["attribute_key"])
    else:
        # The row itself is what its writers queue for; SQLite has one writer anyway.
        connection.execute(
            select(assertion.c.number).where(assertion.c.assertion_id == row["assertion_id"]).with_for_update()
        )


def _still_held_back(connection: Connection, row: Row) -> bool:
    origins = rows(connection, select(evidence).where(evidence.c.root_id == row["root_id"]))
    names = ("thread_ref", "run_ref", "seq", "message_ref", "actor")
    selectors = held_selectors(connection, row["tenant_id"])
    return any(is_named(selectors, Origin(**{name: each[name] for name in names})) for each in origins)


def _note(connection: Connection, row: Row, role: Role, *, by: str, trust: Trust, at: int) -> None:
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
