"""Units of work behind recall: proposed rows, their neighbours in conversation, and what no index has yet."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, bindparam, exists, select

from threadmark.memory.model.scope import Namespace, Scope, namespace_key
from threadmark.memory.model.values import load
from threadmark.memory.recall.post_filter import Held
from threadmark.memory.store.assertion_queries import words_of
from threadmark.memory.store.job_tables import outbox
from threadmark.memory.store.pending import published
from threadmark.memory.store.spaces import Space, live
from threadmark.memory.store.statements import chunks, known_namespaces
from threadmark.memory.store.tables import assertion, namespace, namespace_prefix

__all__ = ["TAIL_COUNT_MAX", "Ground", "Unindexed", "ground", "newest", "proposed"]

#: The most unindexed rows that one recall reads; beyond it the index is down, and the newest count.
TAIL_COUNT_MAX = 2_000
_COLUMNS = [assertion.c[name] for name in Held._fields]
# Built once: spelling a statement takes as long as running it.
_MINE = select(*_COLUMNS).where(assertion.c.tenant_id == bindparam("tenant_id"), published(assertion))
_BY_NUMBER = _MINE.where(assertion.c.number.in_(bindparam("keys", expanding=True)))
_BY_ID = _MINE.where(assertion.c.assertion_id.in_(bindparam("keys", expanding=True)))
_AFTER = _MINE.where(assertion.c.previous_id.in_(bindparam("keys", expanding=True)))
_WAITING = select(outbox.c.number).limit(1)
_NAMESPACES = (
    select(namespace.c.namespace_id, namespace.c.labels)
    .join(namespace_prefix, namespace_prefix.c.namespace_id == namespace.c.namespace_id)
    .where(
        namespace_prefix.c.tenant_id == bindparam("tenant_id"),
        namespace_prefix.c.prefix == bindparam("prefix"),
    )
)


class Unindexed(NamedTuple):
    """A row that no index has, with its terms and those of the turn before it."""

    row: Held
    own: list[str]
    both: list[str]


class Ground(NamedTuple):
    """What a recall starts from: the space that answers, the scope's namespaces, and what no index has yet."""

    space: Space | None
    namespaces: dict[int, Namespace]
    tail: list[Unindexed]


def ground(connection: Connection, scope: Scope) -> Ground:
    """Read before the index is asked: a row that leaves the tail afterwards is in the index by then."""
    spaces = live(connection)
    behind = exists().where(outbox.c.entry == assertion.c.number)
    waiting = connection.scalar(_WAITING) is not None
    return Ground(
        space=spaces[0] if spaces else None,
        namespaces=_namespaces(connection, scope),
        tail=_with_words(connection, scope, behind) if waiting else [],
    )


def newest(connection: Connection, scope: Scope) -> list[Unindexed]:
    """The newest rows of the scope: what recall has when the index is down."""
    return _with_words(connection, scope, assertion.c.number > 0)


def proposed(
    connection: Connection, tenant_id: str, numbers: Collection[int], tops: Collection[int]
) -> dict[int, Held]:
    """The rows with these numbers, and those around `tops` in their conversations."""
    found = _rows(connection, _BY_NUMBER, tenant_id, sorted(numbers))
    near = [row for number, row in found.items() if number in tops]
    known = {row.assertion_id for row in found.values()}
    before = sorted({row.previous_id for row in near if row.previous_id is not None} - known)
    found |= _rows(connection, _BY_ID, tenant_id, before)
    return found | _rows(connection, _AFTER, tenant_id, [row.assertion_id for row in near])


def _namespaces(connection: Connection, scope: Scope) -> dict[int, Namespace]:
    place = {"tenant_id": scope.tenant_id, "prefix": namespace_key(scope.namespace)}
    return {number: tuple(load(labels)) for number, labels in connection.execute(_NAMESPACES, place)}


def _with_words(connection: Connection, scope: Scope, condition: Any) -> list[Unindexed]:
    query = (
        select(*_COLUMNS, assertion.c.terms)
        .where(
            assertion.c.tenant_id == scope.tenant_id,
            assertion.c.namespace_id.in_(known_namespaces(scope)),
            published(assertion),
            condition,
        )
        .order_by(assertion.c.number.desc())
        .limit(TAIL_COUNT_MAX)
    )
    found = [(Held._make(row[:-1]), row[-1].split()) for row in connection.execute(query)]
    before = words_of(connection, sorted({row.previous_id for row, _ in found if row.previous_id is not None}))
    return [Unindexed(row, own, [*before.get(row.previous_id or "", []), *own]) for row, own in found]


def _rows(connection: Connection, query: Select[Any], tenant_id: str, keys: Sequence[Any]) -> dict[int, Held]:
    found: dict[int, Held] = {}
    for part in chunks(keys):
        rows = connection.execute(query, {"tenant_id": tenant_id, "keys": part})
        found.update((row.number, row) for row in map(Held._make, rows))
    return found
