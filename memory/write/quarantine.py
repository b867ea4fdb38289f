"""Quarantine by source: everything that rests on a source leaves recall at once, and comes back when it is released."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, bindparam, exists, insert, select, text, update

from threadmark.memory.errors import Refused
from threadmark.memory.model.admission import Hold, Selector
from threadmark.memory.model.instants import FAR_US
from threadmark.memory.model.provenance import Origin
from threadmark.memory.model.values import canonical, load
from threadmark.memory.store.pending import published
from threadmark.memory.store.statements import IS_KNOWN, enqueue
from threadmark.memory.store.tables import assertion, evidence, quarantine
from threadmark.memory.text.identity import identity_key

__all__ = ["held_selectors", "hold_alone", "hold_source", "is_named", "queue_behind_holds", "rests_on", "selected"]

_TOGETHER, _ALONE = text("SELECT pg_advisory_xact_lock_shared(:key)"), text("SELECT pg_advisory_xact_lock(:key)")
_IN_FORCE = select(quarantine.c.selector).where(
    quarantine.c.tenant_id == bindparam("tenant_id"), quarantine.c.released_at == FAR_US
)


def queue_behind_holds(connection: Connection, tenant_id: str) -> None:
    """Let no source be held or released while this transaction decides what it remembers of it.

    Two servers would pass each other otherwise: the one that remembers does not see the new quarantine, and the one
    that holds does not see the new statement, which is then believed. SQLite has one writer anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_TOGETHER, _hold_lock(tenant_id))


def hold_alone(connection: Connection, tenant_id: str) -> None:
    """Wait for the transactions that remember something, and let others wait for this one."""
    if connection.dialect.name == "postgresql":
        connection.execute(_ALONE, _hold_lock(tenant_id))


def selected(selector: Selector, tenant_id: str) -> Any:
    """The evidence that a selector names, as a condition. Raises Refused for an empty selector."""
    parts = selector.parts()
    if not parts:
        raise Refused("source", "names nothing; an empty selector would match every source")
    condition = evidence.c.tenant_id == tenant_id
    for name, value in parts.items():
        if name == "actor":
            condition &= evidence.c.actor_key == identity_key(str(value))
        else:
            condition &= evidence.c[name] == value
    return condition


def rests_on(selector: Selector, tenant_id: str) -> Any:
    """That an assertion has a source which the selector names, as a condition."""
    return exists().where(evidence.c.root_id == assertion.c.root_id, selected(selector, tenant_id))


def held_selectors(connection: Connection, tenant_id: str) -> list[dict[str, Any]]:
    """The selectors of the quarantines in force."""
    return [load(selector) for selector in connection.scalars(_IN_FORCE, {"tenant_id": tenant_id})]


def is_named(selectors: Iterable[Mapping[str, Any]], origin: Origin) -> bool:
    """Whether one of the selectors names this origin."""
    return any(all(_names(origin, name, value) for name, value in parts.items()) for parts in selectors)


def _names(origin: Origin, name: str, value: Any) -> bool:
    found = getattr(origin, name)
    if name == "actor" and found is not None:
        return identity_key(found) == identity_key(value)
    return bool(found == value)


def hold_source(connection: Connection, tenant_id: str, selector: Selector, reason: str, now: int) -> tuple[str, int]:
    """Put a source in quarantine: its id, and how many assertions left recall."""
    hold_alone(connection, tenant_id)
    quarantine_id = str(uuid4())
    connection.execute(
        insert(quarantine).values(
            quarantine_id=quarantine_id,
            tenant_id=tenant_id,
            selector=canonical(selector.parts()),
            reason=canonical(reason),
            at=now,
            released_at=FAR_US,
        )
    )
    affected = (
        select(assertion.c.number, assertion.c.namespace_id)
        .where(assertion.c.tenant_id == tenant_id, assertion.c.hold == Hold.NONE, rests_on(selector, tenant_id))
        .with_for_update()
    )
    rows = connection.execute(affected).all()
    condition = (assertion.c.tenant_id == tenant_id) & rests_on(selector, tenant_id)
    connection.execute(update(assertion).where(condition, assertion.c.hold == Hold.NONE).values(hold=Hold.SOURCE))
    enqueue(connection, tenant_id, [(row.number, row.namespace_id) for row in rows])
    left = connection.scalars(
        select(assertion.c.assertion_id).where(
            IS_KNOWN, condition, assertion.c.hold == Hold.SOURCE, published(assertion)
        )
    )
    return quarantine_id, len(list(left))


def _hold_lock(tenant_id: str) -> dict[str, int]:
    name = hashlib.sha256(f"threadmark memory hold\0{tenant_id}".encode()).digest()
    return {"key": int.from_bytes(name[:8], "big", signed=True)}
