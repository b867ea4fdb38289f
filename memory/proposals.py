"""Units of work behind recall: proposed rows, their neighbours in conversation, and what no index has yet."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, exists, select

from memory.disposal import Held
from memory.instants import FAR_US
from memory.rows import held_of
from memory.scope import Scope
from memory.statements import chunks, known_namespaces, rows
from memory.tables import assertion, namespace
from memory.tables_jobs import outbox

__all__ = ["TAIL_COUNT_MAX", "Tail", "newest", "proposed", "unindexed", "words_of"]

#: The most unindexed rows that one recall reads; beyond it the index is down, and the newest count.
TAIL_COUNT_MAX = 2_000
_DECIDING = [assertion.c[name] for name in Held.__dataclass_fields__ if name != "namespace"]
_HELD = select(*_DECIDING, namespace.c.labels).join(namespace, namespace.c.namespace_id == assertion.c.namespace_id)
#: A row with its terms and those of the turn before it.
Tail = tuple[Held, list[str], list[str]]


def proposed(connection: Connection, tenant_id: str, ids: Iterable[str], tops: Iterable[str]) -> dict[str, Held]:
    """The rows with these ids, and those around `tops` in their conversations."""
    found = _by_ids(connection, tenant_id, sorted(set(ids)))
    near = sorted(set(tops) & found.keys())
    before = [row.previous_id for each in near if (row := found[each]).previous_id is not None]
    found |= _by_ids(connection, tenant_id, sorted(set(before) - found.keys()))
    for part in chunks(near):
        after = _HELD.where(assertion.c.tenant_id == tenant_id, assertion.c.previous_id.in_(part))
        found |= {row["assertion_id"]: held_of(row) for row in rows(connection, after)}
    return found


def unindexed(connection: Connection, scope: Scope) -> list[Tail]:
    """The rows of the scope whose index entries are behind, newest first."""
    behind = exists().where(outbox.c.assertion_id == assertion.c.assertion_id)
    return _with_words(connection, scope, behind)


def newest(connection: Connection, scope: Scope) -> list[Tail]:
    """The newest rows of the scope: what recall has when the index is down."""
    return _with_words(connection, scope, assertion.c.known_from < FAR_US)


def words_of(connection: Connection, ids: Sequence[str]) -> dict[str, list[str]]:
    """The terms of rows."""
    found: dict[str, list[str]] = {}
    for part in chunks(ids):
        query = select(assertion.c.assertion_id, assertion.c.terms).where(assertion.c.assertion_id.in_(part))
        found.update((each, words.split()) for each, words in connection.execute(query))
    return found


def _with_words(connection: Connection, scope: Scope, condition: Any) -> list[Tail]:
    query = (
        select(*_DECIDING, namespace.c.labels, assertion.c.terms)
        .join(namespace, namespace.c.namespace_id == assertion.c.namespace_id)
        .where(
            assertion.c.tenant_id == scope.tenant_id,
            assertion.c.namespace_id.in_(known_namespaces(scope)),
            condition,
        )
        .order_by(assertion.c.number.desc())
        .limit(TAIL_COUNT_MAX)
    )
    found = rows(connection, query)
    before = words_of(connection, sorted({row["previous_id"] for row in found if row["previous_id"] is not None}))
    return [
        (held_of(row), own := row["terms"].split(), [*before.get(row["previous_id"] or "", []), *own]) for row in found
    ]


def _by_ids(connection: Connection, tenant_id: str, ids: Sequence[str]) -> dict[str, Held]:
    found: dict[str, Held] = {}
    for part in chunks(ids):
        query = _HELD.where(assertion.c.tenant_id == tenant_id, assertion.c.assertion_id.in_(part))
        found |= {row["assertion_id"]: held_of(row) for row in rows(connection, query)}
    return found
