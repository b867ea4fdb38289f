"""Threads: open, find, label, delete."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, delete, exists, func, insert, select, tuple_, update

from threadmark.state import tables
from threadmark.state.entries.ids import new_id
from threadmark.state.entries.instants import to_us
from threadmark.state.errors import NotFound, Refused, ThreadExists
from threadmark.state.records import Thread, thread_of
from threadmark.state.threads import receipts
from threadmark.state.threads.receipts import Receipt, Reply
from threadmark.state.threads.thread_rows import canonical, create_thread, label_rows

__all__ = [
    "SORTS",
    "UNFINISHED_COPY",
    "UNFINISHED_DELETION",
    "ThreadFilter",
    "count_threads",
    "every_thread",
    "find_thread",
    "get_thread",
    "label_thread",
    "lock_thread",
    "open_thread",
    "search_threads",
    "sort_key",
    "tenant_of_copies",
]

#: Limit on the keys of one filter: each adds a condition, and the database's parser limits their number.
FILTER_KEY_COUNT_MAX = 100
#: How the tenant of an unfinished copy is named, before the number of its source. No tenant's name has a space.
UNFINISHED_COPY = "copy of "
#: How the tenant of what is left of a deleted thread is named, before the name of the thread's tenant.
UNFINISHED_DELETION = "deleted by "
SORTS = {
    "thread_id": tables.thread.c.thread_id,
    "status": tables.thread.c.status,
    "created_at": tables.thread.c.created_at,
    "updated_at": tables.thread.c.updated_at,
    "state_updated_at": tables.thread.c.state_updated_at,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadFilter:
    """Which threads to find; all conditions must hold. `metadata` compares the whole value of each top-level key."""

    metadata: Mapping[str, Any] | None = None
    status: str | None = None
    ids: Sequence[str] | None = None


def lock_thread(connection: Connection, tenant_id: str, thread_id: str) -> Row[Any] | None:
    """The row of a thread, locked until the end of the unit; None if there is none."""
    return connection.execute(_by_id(tenant_id, thread_id).with_for_update()).one_or_none()


def open_thread(
    connection: Connection,
    *,
    tenant_id: str,
    thread_id: str | None,
    metadata: Mapping[str, Any],
    keep_existing: bool,
    receipt: Receipt | None,
    now_us: int,
) -> Thread | Reply:
    """Create a thread, or return the existing one if `keep_existing`; a Reply if the key already has one.

    Raises ThreadExists.
    """
    replay = receipts.look_up(connection, tenant_id, receipt, now_us=now_us)
    if replay is not None:
        return replay
    new_thread_id = thread_id or new_id(now_us)
    made = create_thread(connection, tenant_id=tenant_id, thread_id=new_thread_id, metadata=metadata, now_us=now_us)
    if made is None and not keep_existing:
        raise ThreadExists(new_thread_id)
    found = get_thread(connection, tenant_id, new_thread_id) if made is None else thread_of(made)
    receipts.record(connection, tenant_id, receipt, found, thread=found.number)
    return found


def find_thread(connection: Connection, tenant_id: str, thread_id: str) -> Thread | None:
    """The tenant's thread, or None."""
    row = connection.execute(_by_id(tenant_id, thread_id)).one_or_none()
    return None if row is None else thread_of(row)


def get_thread(connection: Connection, tenant_id: str, thread_id: str) -> Thread:
    """The tenant's thread. Raises NotFound."""
    found = find_thread(connection, tenant_id, thread_id)
    if found is None:
        raise NotFound("Thread", thread_id)
    return found


def label_thread(connection: Connection, thread: int, metadata: Mapping[str, Any], *, now_us: int) -> None:
    """Merge top-level keys into the metadata of a thread (by its number). Raises NotFound."""
    row = connection.execute(
        select(tables.thread).where(tables.thread.c.number == thread).with_for_update()
    ).one_or_none()
    if row is None:
        raise NotFound("Thread", str(thread))
    merge_labels(connection, row, metadata, updated_at=now_us)


def merge_labels(connection: Connection, row: Row[Any], metadata: Mapping[str, Any], **values: Any) -> None:
    """Merge top-level keys into the metadata of a locked row, and set the other columns in `values`."""
    before = json.loads(row.metadata)
    # Compare the JSON: in Python True equals 1, so a label could never change from one to the other.
    changed = {
        key: value for key, value in metadata.items() if key not in before or canonical(before[key]) != canonical(value)
    }
    if changed:
        values["metadata"] = json.dumps({**before, **changed}, ensure_ascii=False)
        rows, label = label_rows(row.number, changed), tables.thread_label.c
        connection.execute(
            delete(tables.thread_label).where(label.thread == row.number, label.key.in_([each["key"] for each in rows]))
        )
        connection.execute(insert(tables.thread_label), rows)
    if values:
        connection.execute(update(tables.thread).where(tables.thread.c.number == row.number).values(values))


def search_threads(
    connection: Connection,
    tenant_id: str,
    chosen: ThreadFilter,
    *,
    sort_by: str,
    descending: bool,
    limit: int,
    offset: int = 0,
    around: tuple[int | str, int] | None = None,
) -> list[Thread]:
    """A page of the tenant's threads; ties are broken by age, so pages neither skip nor repeat.

    `beside` is the place (see `sort_key`) next to which the page begins, even if threads were added or removed since.
    """
    column, number = SORTS[sort_by], tables.thread.c.number
    order = (column.desc(), number.desc()) if descending else (column, number)
    statement = _filtered(select(tables.thread), tenant_id, chosen).order_by(*order).limit(limit).offset(offset)
    if around is not None:
        place = tuple_(column, number)
        statement = statement.where(place < tuple_(*around) if descending else place > tuple_(*around))
    return [thread_of(row) for row in connection.execute(statement)]


def sort_key(thread: Thread, sort_by: str) -> tuple[int | str, int]:
    """The place of a thread in the order of `sort_by`: unique, and ordered as the database orders it."""
    value = getattr(thread, sort_by)
    return (to_us(value) if isinstance(value, datetime) else str(value), thread.number)


def every_thread(connection: Connection, *, after: int, count_max: int) -> list[Thread]:
    """Threads of all tenants by number, including those of stateless runs; for database maintenance."""
    thread = tables.thread.c
    unfinished = thread.tenant_id.startswith(UNFINISHED_COPY) | thread.tenant_id.startswith(UNFINISHED_DELETION)
    statement = select(tables.thread).where(thread.number > after, ~unfinished)
    return [thread_of(row) for row in connection.execute(statement.order_by(thread.number).limit(count_max))]


def count_threads(connection: Connection, tenant_id: str, chosen: ThreadFilter) -> int:
    """The number of threads that the filter finds."""
    statement = _filtered(select(func.count(tables.thread.c.number)), tenant_id, chosen)
    return int(connection.execute(statement).scalar_one())


def tenant_of_copies(source: int) -> str:
    """The tenant of unfinished copies of a thread (by its number)."""
    return f"{UNFINISHED_COPY}{source}"


def _by_id(tenant_id: str, thread_id: str) -> Select[Any]:
    return select(tables.thread).where(tables.thread.c.tenant_id == tenant_id, tables.thread.c.thread_id == thread_id)


def _filtered(statement: Select[Any], tenant_id: str, chosen: ThreadFilter) -> Select[Any]:
    if len(chosen.metadata or {}) > FILTER_KEY_COUNT_MAX:
        raise Refused(
            f"A filter may name at most {FILTER_KEY_COUNT_MAX} metadata keys, not {len(chosen.metadata or {})}."
        )
    thread, label = tables.thread.c, tables.thread_label.c
    # Threads of stateless runs appear in no list.
    statement = statement.where(thread.tenant_id == tenant_id, thread.expires_at.is_(None))
    if chosen.status is not None:
        statement = statement.where(thread.status == chosen.status)
    if chosen.ids is not None:
        statement = statement.where(thread.thread_id.in_(list(chosen.ids)))
    for key, value in (chosen.metadata or {}).items():
        statement = statement.where(
            exists().where(label.thread == thread.number, label.key == canonical(key), label.value == canonical(value))
        )
    return statement
