"""Units of work that read: rows as the domain's values, with their sources and successions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Select, and_, bindparam, func, literal, select, union_all

from threadmark.memory.errors import UnknownAssertion
from threadmark.memory.model.assertion import ITEM, Assertion, Which
from threadmark.memory.model.filters import Filter
from threadmark.memory.model.instants import FAR_US, to_us
from threadmark.memory.model.provenance import Evidence
from threadmark.memory.model.scope import Scope, is_below, namespace_key
from threadmark.memory.model.timeline import Succession
from threadmark.memory.model.values import canonical
from threadmark.memory.store.pending import published
from threadmark.memory.store.rows import assertion_of, evidence_of
from threadmark.memory.store.statements import chunks, known_namespaces, rows
from threadmark.memory.store.tables import assertion, evidence, namespace, succession
from threadmark.memory.text.identity import identity_key

__all__ = ["by_ids", "changes", "held_at", "history", "item_versions", "listed", "one", "timeline", "words_of"]

# Labels as they were sent with the row, though others may have spelled the same namespace otherwise.
_LABELS = func.coalesce(assertion.c.spelled_labels, namespace.c.labels).label("labels")
_JOINED = (
    select(assertion, _LABELS)
    .join(namespace, namespace.c.namespace_id == assertion.c.namespace_id)
    .where(published(assertion))
)
_BY_IDS = _JOINED.where(
    assertion.c.tenant_id == bindparam("tenant_id"), assertion.c.assertion_id.in_(bindparam("ids", expanding=True))
)
_EVIDENCE = (
    select(evidence)
    .where(evidence.c.root_id.in_(bindparam("ids", expanding=True)), published(evidence))
    .order_by(evidence.c.number)
)
_PAIRS = select(succession.c.older_id, succession.c.newer_id).where(
    succession.c.kind == literal(Succession.SUPERSEDES, literal_execute=True), published(succession)
)
_SUCCESSIONS = union_all(
    _PAIRS.where(succession.c.older_id.in_(bindparam("ids", expanding=True))),
    _PAIRS.where(succession.c.newer_id.in_(bindparam("ids", expanding=True))),
)
_LINKS = select(succession.c.older_id, succession.c.newer_id, succession.c.kind)
_CHAIN = union_all(
    _LINKS.where(succession.c.older_id.in_(bindparam("ids", expanding=True))),
    _LINKS.where(succession.c.newer_id.in_(bindparam("ids", expanding=True))),
)
#: A key's current version is among its newest.
ITEM_VERSION_COUNT_MAX = 3
Row = dict[str, Any]


def by_ids(connection: Connection, tenant_id: str, ids: Sequence[str]) -> dict[str, Assertion]:
    """The assertions with these ids, with all their sources; what is not there is left out."""
    found: list[Row] = []
    for part in chunks(ids):
        found.extend(rows(connection, _BY_IDS, {"tenant_id": tenant_id, "ids": part}))
    return {each.assertion_id: each for each in dressed(connection, found)}


def one(connection: Connection, scope: Scope, assertion_id: str) -> Assertion:
    """One assertion in the scope. Raises UnknownAssertion, also for one outside it."""
    found = by_ids(connection, scope.tenant_id, [assertion_id]).get(assertion_id)
    if found is None or not scope.covers(found.tenant_id, found.namespace):
        raise UnknownAssertion(assertion_id)
    return found


def history(connection: Connection, scope: Scope, assertion_id: str) -> list[Assertion]:
    """Every version of the statement and of the attribute it speaks of, in the order in which they were believed."""
    known = one(connection, scope, assertion_id)
    root_id = connection.scalar(select(assertion.c.root_id).where(assertion.c.assertion_id == assertion_id))
    same = assertion.c.root_id == root_id
    if known.subject is not None and known.attribute is not None:
        place = Scope(tenant_id=scope.tenant_id, namespace=known.namespace)
        own = timeline(connection, place, known.subject, known.attribute, exact=True)
        others = _succeeding(connection, own)
        return sorted([*own, *others], key=lambda each: (each.known_from, each.valid_from)) if others else own
    found = rows(connection, _JOINED.where(same).order_by(assertion.c.known_from, assertion.c.number))
    return dressed(connection, found)


def _succeeding(connection: Connection, own: Sequence[Assertion]) -> list[Assertion]:
    """Versions under other names that came before or after these while names were compared folded."""
    tenant_id, seen = own[0].tenant_id, {each.assertion_id for each in own}
    found: dict[str, Assertion] = {}
    front = [*seen]
    while front:
        pairs: set[tuple[str, str, str]] = set()
        for part in chunks(front):
            pairs.update(map(tuple, connection.execute(_CHAIN, {"ids": part})))
        parted = {pair[:2] for pair in pairs if pair[2] == Succession.PARTED}
        near = {each for pair in pairs if pair[:2] not in parted for each in pair[:2]}
        front = sorted(near - seen)
        seen |= near
        found |= by_ids(connection, tenant_id, front)
    return list(found.values())


def timeline(
    connection: Connection, scope: Scope, subject: str, attribute: str, *, exact: bool = False
) -> list[Assertion]:
    """Every version of an attribute of a subject, by belief and then by validity."""
    versions = _of_attribute(scope, subject, attribute)
    query = versions.order_by(assertion.c.known_from, assertion.c.valid_from, assertion.c.number)
    found = dressed(connection, rows(connection, query))
    return [each for each in found if not exact or is_below(scope.namespace, each.namespace)]


def held_at(
    connection: Connection, scope: Scope, subject: str, attribute: str, valid_us: int, known_us: int
) -> list[Assertion]:
    """What was believed at one instant to be true of an attribute at another."""
    query = (
        _of_attribute(scope, subject, attribute)
        .where(
            assertion.c.hold == "",
            assertion.c.valid_from <= valid_us,
            assertion.c.valid_to > valid_us,
            assertion.c.known_from <= known_us,
            assertion.c.known_to > known_us,
        )
        .order_by(assertion.c.valid_from, assertion.c.number)
    )
    return dressed(connection, rows(connection, query))


def _of_attribute(scope: Scope, subject: str, attribute: str) -> Select[Any]:
    return _JOINED.where(
        assertion.c.tenant_id == scope.tenant_id,
        assertion.c.namespace_id.in_(known_namespaces(scope)),
        assertion.c.subject_key == identity_key(subject),
        assertion.c.attribute_key == identity_key(attribute),
    )


def item_versions(connection: Connection, scope: Scope, key: str) -> list[Assertion]:
    """The versions of an item of exactly this namespace, newest first."""
    query = (
        _JOINED.where(
            assertion.c.tenant_id == scope.tenant_id,
            namespace.c.labels == namespace_key(scope.namespace),
            assertion.c.subject_key == canonical(identity_key(key)),
            assertion.c.kind == ITEM,
        )
        .order_by(assertion.c.number.desc())
        .limit(ITEM_VERSION_COUNT_MAX)
    )
    return dressed(connection, rows(connection, query))


def changes(connection: Connection, scope: Scope, from_us: int, to_us_: int) -> tuple[list[Assertion], list[Assertion]]:
    """What was believed at the second instant and not at the first, and the other way round."""
    inside = and_(
        assertion.c.tenant_id == scope.tenant_id,
        assertion.c.namespace_id.in_(known_namespaces(scope)),
        assertion.c.hold == "",
    )

    def between(first: int, second: int) -> list[Assertion]:
        query = _JOINED.where(
            inside,
            assertion.c.known_from <= second,
            assertion.c.known_to > second,
            (assertion.c.known_from > first) | (assertion.c.known_to <= first),
        ).order_by(assertion.c.number)
        return dressed(connection, rows(connection, query))

    return between(from_us, to_us_), between(to_us_, from_us)


def listed(
    connection: Connection, scope: Scope, given: Filter, *, after: int, count_max: int, which: Which, now: int
) -> list[tuple[int, Assertion]]:
    """A page of a scope, in the order of arrival, each with its place; a page that starts after it skips nothing."""
    query = _JOINED.where(
        assertion.c.tenant_id == scope.tenant_id,
        assertion.c.namespace_id.in_(known_namespaces(scope)),
        assertion.c.number > after,
        *_asked(given),
    )
    if which is not Which.ALL:
        apart = assertion.c.hold != "" if which is Which.QUARANTINED else assertion.c.hold == ""
        query = query.where(assertion.c.known_to == FAR_US, assertion.c.expires_at > now, apart)
    found = rows(connection, query.order_by(assertion.c.number).limit(count_max))
    return list(zip([row["number"] for row in found], dressed(connection, found), strict=True))


def evidence_by_root(connection: Connection, roots: Iterable[str]) -> dict[str, list[Evidence]]:
    """The sources of statements, oldest first."""
    wanted = sorted(set(roots))
    found: dict[str, list[Evidence]] = {root: [] for root in wanted}
    for part in chunks(wanted):
        for row in rows(connection, _EVIDENCE, {"ids": part}):
            found[row["root_id"]].append(evidence_of(row))
    return found


def dressed(connection: Connection, found: Sequence[Mapping[str, Any]]) -> list[Assertion]:
    """Rows with their sources and with what they superseded, in the order given."""
    sources = evidence_by_root(connection, (row["root_id"] for row in found))
    ids = [row["assertion_id"] for row in found]
    newer: dict[str, str] = {}
    older: dict[str, set[str]] = {}
    for part in chunks(ids):
        for before, after in set(map(tuple, connection.execute(_SUCCESSIONS, {"ids": part}))):
            newer[before] = after
            older.setdefault(after, set()).add(before)
    return [
        assertion_of(
            row,
            sources[row["root_id"]],
            sorted(older.get(row["assertion_id"], ())),
            newer.get(row["assertion_id"]),
        )
        for row in found
    ]


def words_of(connection: Connection, ids: Sequence[str]) -> dict[str, list[str]]:
    """The terms of rows."""
    found: dict[str, list[str]] = {}
    for part in chunks(ids):
        query = select(assertion.c.assertion_id, assertion.c.terms).where(assertion.c.assertion_id.in_(part))
        found.update((each, words.split()) for each, words in connection.execute(query))
    return found


def _asked(given: Filter) -> list[Any]:
    columns = {
        "kind": assertion.c.kind,
        "subject": assertion.c.subject_key,
        "attribute": assertion.c.attribute_key,
        "trust": assertion.c.trust,
        "actor": assertion.c.speaker,
        "thread_ref": assertion.c.thread_ref,
        "run_ref": assertion.c.run_ref,
    }
    asked: list[Any] = [
        column.in_(sorted(values)) for name, column in columns.items() if (values := getattr(given, name)) is not None
    ]
    if given.confidence_min is not None:
        asked.append(assertion.c.confidence >= given.confidence_min)
    if given.observed_from is not None:
        asked.append(assertion.c.observed_at >= to_us(given.observed_from))
    if given.observed_to is not None:
        asked.append(assertion.c.observed_at < to_us(given.observed_to))
    return asked
