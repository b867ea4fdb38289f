"""What an erasure removes beside assertions: recalls that repeat them, places, locks, quarantines. In batches, so
that others write in between; each batch is counted in the transaction that removes it."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Table, delete, select

from threadmark.memory.erase.erasure_jobs import count_also, what_of
from threadmark.memory.erase.forget import Forget
from threadmark.memory.model.scope import Scope, is_below
from threadmark.memory.model.values import load
from threadmark.memory.store.database import Database
from threadmark.memory.store.job_tables import recall_log, tombstone
from threadmark.memory.store.statements import chunks, known_namespaces
from threadmark.memory.store.tables import attribute_lock, namespace, namespace_prefix, quarantine
from threadmark.memory.text.identity import identity_key

__all__ = ["RecallPage", "recalls_telling", "remove_batch", "remove_leftovers"]

#: Rows of one transaction, and places (each with its prefixes).
BATCH_COUNT, PLACE_COUNT = 500, 100
#: Recalls that are looked through at once.
PAGE_COUNT = 1_000


class _Rows(NamedTuple):
    name: str
    table: Table
    condition: ColumnElement[bool]


class RecallPage(NamedTuple):
    """Some of the log of recalls, up to the number `after`."""

    after: int
    numbers: list[int]  #: of those that go


async def remove_leftovers(database: Database, tenant_id: str, erasure_id: str) -> None:
    """Remove what hangs on no assertion, and the recalls that tell what the job erased. It can be repeated."""
    what = await database.read(partial(what_of, tenant_id=tenant_id, erasure_id=erasure_id))
    if what is None:
        return
    while await database.write(partial(remove_batch, tenant_id=tenant_id, erasure_id=erasure_id)):
        continue
    after = 0
    mine = recall_log.c.tenant_id == tenant_id
    while page := await database.read(
        partial(recalls_telling, among=mine, erasure_id=erasure_id, what=what, after=after, count_max=PAGE_COUNT)
    ):
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
        tables = {"attribute_locks": attribute_lock, "quarantines": quarantine}
        return [_Rows(name, table, table.c.tenant_id == tenant_id) for name, table in tables.items()]
    if what.namespace is not None:
        below = known_namespaces(Scope(tenant_id=tenant_id, namespace=what.namespace))
        return [_Rows("attribute_locks", attribute_lock, locks.namespace_id.in_(below))]
    if what.subject is not None:
        about = (locks.tenant_id == tenant_id) & (locks.subject_key == identity_key(what.subject))
        return [_Rows("attribute_locks", attribute_lock, about)]
    return []


def _places(connection: Connection, tenant_id: str, what: Forget) -> list[int]:
    if what.tenant:
        wanted: Any = select(namespace.c.namespace_id).where(namespace.c.tenant_id == tenant_id)
    elif what.namespace is not None:
        wanted = known_namespaces(Scope(tenant_id=tenant_id, namespace=what.namespace))
    else:
        return []
    return list(connection.scalars(wanted.limit(PLACE_COUNT)))


def recalls_telling(
    connection: Connection, among: ColumnElement[bool], erasure_id: str, what: Forget, after: int, count_max: int
) -> RecallPage | None:
    """Of the next recalls `among` the log, those that an erasure removes: their questions often repeat what is erased.

    None when there are no more.
    """
    query = select(recall_log).where(among, recall_log.c.number > after).order_by(recall_log.c.number).limit(count_max)
    found = connection.execute(query).all()
    if not found:
        return None
    shown = {row.number: {each for each, _ in load(row.answers)} for row in found}
    erased: set[str] = set()
    for part in chunks(sorted(set().union(*shown.values()))):
        gone = select(tombstone.c.assertion_id).where(
            tombstone.c.erasure_id == erasure_id, tombstone.c.assertion_id.in_(part)
        )
        erased.update(connection.scalars(gone))
    numbers = [row.number for row in found if _is_named(row, what) or not erased.isdisjoint(shown[row.number])]
    return RecallPage(found[-1].number, numbers)


def _is_named(row: Any, what: Forget) -> bool:
    """Whether the selector names the recall, whatever it was answered."""
    if what.tenant:
        return True
    if what.namespace is not None:
        return is_below(load(row.namespace), what.namespace)
    parts = {} if what.source is None else what.source.parts()
    asked = {name: value for name, value in parts.items() if name in {"thread_ref", "run_ref"}}
    return bool(asked) and all(getattr(row, name) == value for name, value in asked.items())


def _forget_recalls(connection: Connection, tenant_id: str, erasure_id: str, numbers: Sequence[int]) -> None:
    removed = connection.execute(delete(recall_log).where(recall_log.c.number.in_(numbers))).rowcount
    count_also(connection, tenant_id, erasure_id, {"recalls": removed})
