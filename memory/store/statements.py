"""Statements that several units share. Values are bound; only the constants of partial indexes are written out."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import uuid4

from sqlalchemy import Connection, bindparam, insert, literal, select, update

from threadmark.memory.model.assertion import Disposition, Verdict
from threadmark.memory.model.instants import FAR_US
from threadmark.memory.model.prepared import Prepared
from threadmark.memory.model.provenance import Role, Trust
from threadmark.memory.model.scope import Namespace, Scope, namespace_key
from threadmark.memory.store.job_tables import outbox
from threadmark.memory.store.pending import make_moment_free, published
from threadmark.memory.store.tables import assertion, attribute_lock, evidence, namespace, namespace_prefix, succession

__all__ = [
    "IS_HELD",
    "IS_KNOWN",
    "add_evidence",
    "chunks",
    "earlier_verdict",
    "enqueue",
    "insert_version",
    "is_recorded",
    "known_namespaces",
    "lock_attribute",
    "namespace_id",
    "namespace_ids",
    "rows",
    "strengthened",
    "succeed",
]

ID_COUNT_MAX = 500
T = TypeVar("T")

# Literals, not parameters: SQLite uses a partial index only where it can see that the condition holds.
IS_KNOWN = assertion.c.known_to == literal(FAR_US, literal_execute=True)
IS_HELD = IS_KNOWN & (assertion.c.hold == literal("", literal_execute=True))

# Spelled once: spelling a statement takes as long as running it.
_NAMESPACE = select(namespace.c.namespace_id).where(
    namespace.c.tenant_id == bindparam("tenant_id"), namespace.c.labels == bindparam("labels")
)
_RECORDED = (
    select(evidence.c.root_id, evidence.c.number, evidence.c.import_number)
    .where(
        evidence.c.namespace_id == bindparam("namespace_id"),
        evidence.c.origin_key == bindparam("origin_key"),
        evidence.c.digest == bindparam("digest"),
        evidence.c.role.in_([Role.SUPPORTS, Role.CORRECTS]),
    )
    # The first record of the moment, and not what an import has as a further source of the same words.
    .order_by(evidence.c.once.desc(), evidence.c.number)
)
_LATEST = (
    select(assertion)
    .where(assertion.c.root_id == bindparam("root_id"), published(assertion))
    .order_by(assertion.c.known_to.desc(), assertion.c.number.desc())
    .limit(1)
    .with_for_update()
)
_INSERT_VERSION = insert(assertion).returning(assertion.c.number)
_INSERT_EVIDENCE = insert(evidence).inline()
_INSERT_OUTBOX = insert(outbox).inline()
_INSERT_SUCCESSION = insert(succession).inline()


def namespace_ids(connection: Connection, tenant_id: str, wanted: Iterable[Namespace]) -> dict[Namespace, int]:
    """The numbers of namespaces, given one where they are new."""
    return {labels: namespace_id(connection, tenant_id, labels) for labels in dict.fromkeys(wanted)}


def namespace_id(connection: Connection, tenant_id: str, labels: Namespace) -> int:
    """The number of a namespace, given one if it is new."""
    spelled = namespace_key(labels)
    found = connection.scalar(_NAMESPACE, {"tenant_id": tenant_id, "labels": spelled})
    if found is not None:
        return int(found)
    made = insert(namespace).values(tenant_id=tenant_id, labels=spelled).returning(namespace.c.namespace_id)
    number = int(connection.execute(made).scalar_one())
    prefixes = [namespace_key(labels[:depth]) for depth in range(len(labels) + 1)]
    connection.execute(
        insert(namespace_prefix),
        [{"tenant_id": tenant_id, "prefix": prefix, "namespace_id": number} for prefix in prefixes],
    )
    return number


def known_namespaces(scope: Scope) -> Any:
    """The numbers of the namespaces in a scope, as a subquery."""
    return select(namespace_prefix.c.namespace_id).where(
        namespace_prefix.c.tenant_id == scope.tenant_id,
        namespace_prefix.c.prefix == namespace_key(scope.namespace),
    )


def lock_attribute(connection: Connection, tenant_id: str, number: int, subject_key: str, attribute_key: str) -> None:
    """Queue behind other writers of this attribute until the transaction ends."""
    moved = connection.execute(
        update(attribute_lock)
        .where(
            attribute_lock.c.namespace_id == number,
            attribute_lock.c.subject_key == subject_key,
            attribute_lock.c.attribute_key == attribute_key,
        )
        .values(change_count=attribute_lock.c.change_count + 1)
    )
    if moved.rowcount == 0:
        # Two first writers meet at the unique constraint; the later one is tried again.
        connection.execute(
            insert(attribute_lock).values(
                tenant_id=tenant_id,
                namespace_id=number,
                subject_key=subject_key,
                attribute_key=attribute_key,
                change_count=1,
            )
        )


def insert_version(connection: Connection, row: Mapping[str, Any]) -> int:
    """Insert one version, queue its index entry, and return its number."""
    number = int(connection.execute(_INSERT_VERSION, dict(row)).scalar_one())
    enqueue(connection, row["tenant_id"], [(number, row["namespace_id"])])
    return number


def enqueue(connection: Connection, tenant_id: str, changed: Iterable[tuple[int, int]]) -> None:
    """Queue index entries (number, namespace), in the transaction that changed their rows."""
    rows = [
        {"tenant_id": tenant_id, "entry": entry, "namespace_id": number, "due_at": 0, "attempt": 0}
        for entry, number in changed
    ]
    if rows:
        connection.execute(_INSERT_OUTBOX, rows)


def succeed(connection: Connection, tenant_id: str, at: int, pairs: Iterable[tuple[str, str, str]]) -> None:
    """Record what came after what: (older, newer, kind)."""
    rows = [
        {"tenant_id": tenant_id, "older_id": older, "newer_id": newer, "kind": kind, "at": at}
        for older, newer, kind in pairs
    ]
    if rows:
        connection.execute(_INSERT_SUCCESSION, rows)


def add_evidence(connection: Connection, sources: Sequence[Mapping[str, Any]], *, once: bool = True) -> None:
    """Append sources. The rows lack only their ids. `once=False`: the moment is recorded again, of a statement that
    ended.
    """
    if sources:
        connection.execute(
            _INSERT_EVIDENCE,
            [{**row, "evidence_id": str(uuid4()), "once": _once(row) if once else 0} for row in sources],
        )


def _once(row: Mapping[str, Any]) -> int:
    return int(row.get("origin_key") is not None and row["role"] == Role.SUPPORTS)


def strengthened(connection: Connection, row: dict[str, Any], item: Prepared) -> None:
    """Let a statement that is said again last as long as its longest word, and trust it as its most trusted one."""
    order = list(Trust)
    trust = min(Trust(row["trust"]), item.draft.trust, key=order.index)
    expires_at = max(row["expires_at"], item.expires_at)
    if (trust, expires_at) == (row["trust"], row["expires_at"]):
        return
    row |= {"trust": trust, "expires_at": expires_at}
    if "number" in row:
        same = assertion.c.assertion_id == row["assertion_id"]
        connection.execute(update(assertion).where(same).values(trust=trust, expires_at=expires_at))
        enqueue(connection, row["tenant_id"], [(row["number"], row["namespace_id"])])


def is_recorded(connection: Connection, number: int, item: Prepared) -> bool:
    """Whether this moment has made this statement before."""
    return item.origin_key is not None and _root_recorded(connection, number, item) is not None


def earlier_verdict(connection: Connection, number: int, item: Prepared) -> Verdict | None:
    """The verdict for a job that runs again: what became of this moment's statement the first time.

    None where it has expired meanwhile: then it counts as new.
    """
    root_id = _root_recorded(connection, number, item)
    if root_id is None or not (found := rows(connection, _LATEST, {"root_id": root_id})):
        return None
    latest = found[0]
    if latest["known_to"] == FAR_US:
        if latest["expires_at"] <= item.now:
            return None
        strengthened(connection, latest, item)
    disposition = Disposition.QUARANTINED if latest["hold"] else Disposition.DUPLICATE
    return Verdict(assertion_id=latest["assertion_id"], disposition=disposition, hold=latest["hold"])


def _root_recorded(connection: Connection, number: int, item: Prepared) -> str | None:
    moment = {"namespace_id": number, "origin_key": item.origin_key, "digest": item.digest}
    found = connection.execute(_RECORDED, moment).all()
    free = make_moment_free(connection, [(row.number, row.import_number) for row in found])
    return next((str(row.root_id) for row in found if row.number not in free), None)


def rows(connection: Connection, query: Any, values: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """The rows of a query, by column name."""
    return [row._asdict() for row in connection.execute(query, values)]


def chunks(ids: Sequence[T]) -> Iterable[Sequence[T]]:
    """`ids` in pieces that a statement may bind."""
    return (ids[at : at + ID_COUNT_MAX] for at in range(0, len(ids), ID_COUNT_MAX))
