"""Export and import: JSON lines, one row a line, in the order of arrival. What is exported, imported and exported again
is equal, byte for byte."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, and_, insert, select

from threadmark.memory.errors import Refused
from threadmark.memory.model.scope import Scope, namespace_of
from threadmark.memory.model.values import canonical, load
from threadmark.memory.store.archived_rows import LOCAL, merge, parsed
from threadmark.memory.store.job_tables import recall_log, tombstone
from threadmark.memory.store.statements import enqueue, known_namespaces, namespace_id, rows
from threadmark.memory.store.tables import assertion, attribute, evidence, namespace, quarantine, succession

__all__ = ["FORMAT", "Imported", "exported", "exported_tables", "import_lines"]

FORMAT = {"format": "threadmark-memory", "version": 1}
PAGE_COUNT = 1_000
_TABLES: dict[str, Table] = {
    "attribute": attribute,
    "assertion": assertion,
    "evidence": evidence,
    "succession": succession,
    "recall": recall_log,
    "quarantine": quarantine,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import did, by kind of line."""

    added: Mapping[str, int]
    known: Mapping[str, int]  #: held already; left as they are
    erased: int  #: ids with a tombstone: they do not come back


def exported_tables() -> frozenset[str]:
    """The names of the tables whose rows an export gives."""
    return frozenset(each.name for each in _TABLES.values())


def exported(connection: Connection, scope: Scope) -> Iterator[str]:
    """The lines of everything that the scope covers."""
    yield canonical(FORMAT)
    numbers = set(connection.scalars(known_namespaces(scope)))
    labels = {
        number: load(spelled)
        for number, spelled in connection.execute(
            select(namespace.c.namespace_id, namespace.c.labels).where(namespace.c.tenant_id == scope.tenant_id)
        )
        if number in numbers
    }
    ids: set[str] = set()
    own = select(assertion.c.attribute_key).where(assertion.c.namespace_id.in_(known_namespaces(scope))).distinct()
    attributes = set(connection.scalars(own)) if scope.namespace else None
    for kind, table in _TABLES.items():
        for row in _all(connection, table, scope):
            if kind == "attribute" and attributes is not None and row["attribute_key"] not in attributes:
                continue
            if not _is_inside(kind, row, labels, ids, scope):
                continue
            if kind == "assertion":
                ids.add(row["assertion_id"])
            kept = {name: value for name, value in row.items() if name not in LOCAL}
            if "namespace_id" in row:
                kept["namespace"] = labels[row["namespace_id"]]
            yield canonical({"kind": kind, "row": kept})


def import_lines(connection: Connection, scope: Scope, lines: Iterable[str]) -> Imported:
    """Keep the rows of an export under the scope's tenant, as they were, times and all.

    Raises Refused with the number of the line, and nothing is kept, for another format, for a line that is no row, for
    a namespace outside the scope, for an id that another tenant has, and for a belief that contradicts one held here.
    """
    added: dict[str, int] = {}
    known: dict[str, int] = {}
    erased = 0
    is_empty = True
    fresh: list[tuple[int, int]] = []
    for at, line in enumerate(lines):
        path = f"line {at + 1}"
        if at == 0:
            _check_format(line, path)
            is_empty = False
            continue
        kind, row = parsed(line, path, _TABLES)
        table = _TABLES[kind]
        if "namespace" in row and "namespace_id" in table.c:
            labels = namespace_of(row.pop("namespace"), f"{path}.namespace")
            if not scope.covers(scope.tenant_id, labels):
                raise Refused(f"{path}.namespace", "is outside the scope of the request")
            row["namespace_id"] = namespace_id(connection, scope.tenant_id, labels)
        if kind == "quarantine" and scope.namespace:
            raise Refused(path, "is a quarantine of the whole tenant, and the request is for a part of it")
        row["tenant_id"] = scope.tenant_id
        if _is_erased(connection, row):
            erased += 1
        elif _is_known(connection, table, kind, row, path):
            known[kind] = known.get(kind, 0) + 1
        else:
            merge(connection, kind, row, path)
            number = connection.execute(insert(table).values(**row).returning(table.c.number)).scalar_one()
            added[kind] = added.get(kind, 0) + 1
            if kind == "assertion":
                fresh.append((number, row["namespace_id"]))
        if len(fresh) >= PAGE_COUNT:
            enqueue(connection, scope.tenant_id, fresh)
            fresh.clear()
    if is_empty:
        raise Refused("line 1", "is missing; the first line of an export is its heading")
    enqueue(connection, scope.tenant_id, fresh)
    return Imported(added=added, known=known, erased=erased)


def _all(connection: Connection, table: Table, scope: Scope) -> Iterator[dict[str, Any]]:
    after = 0
    mine = table.c.tenant_id == scope.tenant_id
    while True:
        query = select(table).where(mine, table.c.number > after).order_by(table.c.number).limit(PAGE_COUNT)
        found = rows(connection, query)
        if not found:
            return
        yield from found
        after = found[-1]["number"]


def _is_inside(kind: str, row: Mapping[str, Any], labels: Mapping[int, Any], ids: set[str], scope: Scope) -> bool:
    if kind == "succession":
        return row["older_id"] in ids and row["newer_id"] in ids
    if kind == "recall":
        return scope.covers(scope.tenant_id, load(row["namespace"]))
    if kind == "quarantine":
        # It holds for the whole tenant, so it is nobody else's to take along.
        return scope.namespace == ()
    return "namespace_id" not in row or row["namespace_id"] in labels


def _check_format(line: str, path: str) -> None:
    try:
        found = load(line)
    except ValueError as error:
        raise Refused(path, "is not JSON") from error
    if found != FORMAT:
        raise Refused(path, f"is not the heading {canonical(FORMAT)}")


def _is_erased(connection: Connection, row: Mapping[str, Any]) -> bool:
    ids = [row[name] for name in ("assertion_id", "root_id", "older_id", "newer_id") if name in row]
    if "answers" in row:
        ids = [each for each, _ in load(row["answers"])]
    if not ids:
        return False
    found = connection.scalar(select(tombstone.c.number).where(tombstone.c.assertion_id.in_(ids)).limit(1))
    return found is not None


def _is_known(connection: Connection, table: Table, kind: str, row: Mapping[str, Any], path: str) -> bool:
    names = {
        "attribute": ("tenant_id", "attribute_key"),
        "assertion": ("assertion_id",),
        "evidence": ("evidence_id",),
        "succession": ("older_id", "newer_id", "kind"),
        "recall": ("recall_id",),
        "quarantine": ("quarantine_id",),
    }[kind]
    same = and_(*(table.c[name] == row[name] for name in names))
    owner = connection.scalar(select(table.c.tenant_id).where(same).limit(1))
    if owner is not None and owner != row["tenant_id"]:
        raise Refused(path, "has an id that is taken")
    return owner is not None
