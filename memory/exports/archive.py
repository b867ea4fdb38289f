"""Exports: JSON lines, one row a line, in the order of arrival. What is exported, imported and exported again is equal,
byte for byte. An export has a thread and a connection of its own, so that no question waits for one."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from sqlalchemy import Connection, Table, select
from sqlalchemy.exc import DBAPIError

from threadmark.db import Limits
from threadmark.db.execution.pools import check_wanted
from threadmark.memory.errors import Unavailable
from threadmark.memory.exports.spooled_lines import SpooledLines
from threadmark.memory.model.scope import Scope
from threadmark.memory.model.values import canonical, load
from threadmark.memory.pools import EXPORTS
from threadmark.memory.store.database import open_engine
from threadmark.memory.store.job_tables import recall_log
from threadmark.memory.store.pending import published
from threadmark.memory.store.statements import known_namespaces, rows
from threadmark.memory.store.tables import assertion, attribute, evidence, namespace, quarantine, succession

__all__ = ["DERIVED", "FORMAT", "LOCAL", "TABLES", "export_to", "exported", "exported_tables"]

FORMAT = {"format": "threadmark-memory", "version": 1}
#: Columns that say where a row stands in one database.
LOCAL = {"number", "tenant_id", "namespace_id", "import_number"}
#: Columns that are made from the others.
DERIVED = {"actor_key", "said_by", "spelled_labels"}
PAGE_COUNT = 1_000
TABLES: dict[str, Table] = {
    "attribute": attribute,
    "assertion": assertion,
    "evidence": evidence,
    "succession": succession,
    "recall": recall_log,
    "quarantine": quarantine,
}


def exported_tables() -> frozenset[str]:
    """The names of the tables whose rows an export gives."""
    return frozenset(each.name for each in TABLES.values())


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
    here = assertion.c.namespace_id.in_(known_namespaces(scope))
    own = select(assertion.c.attribute_key).where(here, published(assertion)).distinct()
    attributes = set(connection.scalars(own)) if scope.namespace else None
    for kind, table in TABLES.items():
        for row in _all(connection, table, scope):
            if kind == "attribute" and attributes is not None and row["attribute_key"] not in attributes:
                continue
            if not _is_inside(kind, row, labels, ids, scope):
                continue
            if kind == "assertion":
                ids.add(row["assertion_id"])
            kept = {name: value for name, value in row.items() if name not in LOCAL | DERIVED}
            if "namespace_id" in row:
                spelled = row.get("spelled_labels")
                kept["namespace"] = labels[row["namespace_id"]] if spelled is None else load(spelled)
            yield canonical({"kind": kind, "row": kept})


def _all(connection: Connection, table: Table, scope: Scope) -> Iterator[dict[str, Any]]:
    after = 0
    mine = table.c.tenant_id == scope.tenant_id
    if "import_number" in table.c:
        mine &= published(table)
    while True:
        # An export that its client gave up ends here, and frees its thread.
        check_wanted()
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
        # It holds for the whole tenant, so an export of less does not include it.
        return scope.namespace == ()
    return "namespace_id" not in row or row["namespace_id"] in labels


async def export_to(url: str, spool: SpooledLines, scope: Scope, limits: Limits) -> None:
    """Write the lines of everything that the scope covers, of one snapshot. Raises Unavailable."""
    await EXPORTS.run(partial(_export, url, spool, scope, limits))


def _export(url: str, spool: SpooledLines, scope: Scope, limits: Limits) -> None:
    engine = open_engine(url, write=False, limits=limits)
    try:
        with engine.connect() as connection, connection.begin() as transaction:
            spool.write_lines(exported(connection, scope))
            transaction.rollback()
    except DBAPIError as error:
        raise Unavailable("the memory database cannot be read") from error
    finally:
        engine.dispose()
