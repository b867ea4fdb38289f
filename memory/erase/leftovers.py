"""What an erasure removes beside assertions: recalls that repeat them, places, locks, quarantines. In batches, so
that others write in between; each batch is counted in the transaction that removes it."""

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Table, delete, select

from threadmark.memory.erase.erasure_jobs import count_also, what_of
from threadmark.memory.erase.forget import Forget
from threadmark.memory.model.scope import Namespace, Scope, is_below
from threadmark.memory.model.values import load
from threadmark.memory.store.database import Database
from threadmark.memory.store.job_tables import recall_log
from threadmark.memory.store.statements import known_namespaces
from threadmark.memory.store.tables import attribute_lock, namespace, namespace_prefix, quarantine
from threadmark.memory.text.identity import identity_key

__all__ = ["remove_batch", "remove_leftovers"]

#: Rows of one transaction, and places (each with its prefixes).
BATCH_COUNT, PLACE_COUNT = 500, 100
#: Recalls that are looked through at once.
PAGE_COUNT = 1_000


class _Rows(NamedTuple):
    name: str
    table: Table
    condition: ColumnElement[bool]


class _Page(NamedTuple):
    after: int
    numbers: list[int]  #: of recalls that go


async def remove_leftovers(database: Database, tenant_id: str, erasure_id: str, gone: Collection[str]) -> None:
    """Remove what hangs on no assertion, and the recalls that were answered with one of `gone`. It can be repeated."""
    what = await database.read(partial(what_of, tenant_id=tenant_id, erasure_id=erasure_id))
    if what is None:
        return
    while await database.write(partial(remove_batch, tenant_id=tenant_id, erasure_id=erasure_id)):
        continue
    erased, after = frozenset(gone), 0
    while True:
        page = await database.read(
            partial(_telling, tenant_id=tenant_id, erased=erased, prefix=what.namespace, after=after),
        )
        if page is None:
            return
        after = page.after
        if page.numbers:
            await database.write(
                partial(_forget_recalls, tenant_id=tenant_id, erasure_id=erasure_id, numbers=page.numbers)
            )


def remove_batch(connection: Connection, tenant_id: str, erasure_id: str) -> bool:
    """Remove and count some of it in one transaction; whether there was any."""
    what = what_of(connection, tenant_id, erasure_id, locked=True)
    if what is None:
        return False
    for each in _rows_of(tenant_id, what):
        some = select(each.table.c.number).where(each.condition).order_by(each.table.c.number).limit(BATCH_COUNT)
        if numbers := list(connection.scalars(some)):
            connection.execute(delete(each.table).where(each.table.c.number.in_(numbers)))
            count_also(connection, tenant_id, erasure_id, {each.name: len(numbers)})
            return True
    places = _places(connection, tenant_id, what)
    if not places:
        return False
    # A place goes with its prefixes: by them it is found.
    counts = {
        name: connection.execute(delete(table).where(table.c.namespace_id.in_(places))).rowcount
        for name, table in (("namespace_prefixes", namespace_prefix), ("namespaces", namespace))
    }
    count_also(connection, tenant_id, erasure_id, counts)
    return any(counts.values())


def _rows_of(tenant_id: str, what: Forget) -> list[_Rows]:
    locks = attribute_lock.c
    if what.tenant:
        tables = {"attribute_locks": attribute_lock, "quarantines": quarantine, "recalls": recall_log}
        return [_Rows(name, table, table.c.tenant_id == tenant_id) for name, table in tables.items()]
    if what.namespace is not None:
        below = known_namespaces(Scope(tenant_id=tenant_id, namespace=what.namespace))
        return [_Rows("attribute_locks", attribute_lock, locks.namespace_id.in_(below))]
    if what.subject is not None:
        about = (locks.tenant_id == tenant_id) & (locks.subject_key == identity_key(what.subject))
        return [_Rows("attribute_locks", attribute_lock, about)]
    source = what.source
    if source is None or (source.thread_ref is None and source.run_ref is None):
        return []
    asked = recall_log.c.tenant_id == tenant_id
    for name in ("thread_ref", "run_ref"):
        if (value := getattr(source, name)) is not None:
            asked &= recall_log.c[name] == value
    return [_Rows("recalls", recall_log, asked)]


def _places(connection: Connection, tenant_id: str, what: Forget) -> list[int]:
    if what.tenant:
        wanted: Any = select(namespace.c.namespace_id).where(namespace.c.tenant_id == tenant_id)
    elif what.namespace is not None:
        wanted = known_namespaces(Scope(tenant_id=tenant_id, namespace=what.namespace))
    else:
        return []
    return list(connection.scalars(wanted.limit(PLACE_COUNT)))


def _telling(
    connection: Connection, tenant_id: str, erased: frozenset[str], prefix: Namespace | None, after: int
) -> _Page | None:
    """Of the next recalls, those whose questions often repeat what is erased; None when there are no more."""
    query = (
        select(recall_log.c.number, recall_log.c.namespace, recall_log.c.answers)
        .where(recall_log.c.tenant_id == tenant_id, recall_log.c.number > after)
        .order_by(recall_log.c.number)
        .limit(PAGE_COUNT)
    )
    found = connection.execute(query).all()
    if not found:
        return None
    numbers = [
        number
        for number, labels, answers in found
        if (prefix is not None and is_below(load(labels), prefix)) or any(each in erased for each, _ in load(answers))
    ]
    return _Page(found[-1].number, numbers)


def _forget_recalls(connection: Connection, tenant_id: str, erasure_id: str, numbers: Sequence[int]) -> None:
    removed = connection.execute(delete(recall_log).where(recall_log.c.number.in_(numbers))).rowcount
    count_also(connection, tenant_id, erasure_id, {"recalls": removed})
