"""Chains of versions in which one name superseded another that only looks alike: what the former rule left behind."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, and_, func, or_, select

from threadmark.memory.model.assertion import Cardinality
from threadmark.memory.model.instants import FAR_US
from threadmark.memory.model.scope import Namespace
from threadmark.memory.model.timeline import Succession
from threadmark.memory.model.values import load
from threadmark.memory.store.database import Database
from threadmark.memory.store.pending import published
from threadmark.memory.store.tables import assertion, namespace, succession
from threadmark.memory.text.terms import folded

__all__ = ["Chain", "ChainName", "Link", "merged_chains", "merged_links"]

#: A namespace's number, and the folded subject and attribute.
ChainKey = tuple[int, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainName:
    """One of the names in a chain, and how many versions it has."""

    subject: str
    attribute: str
    version_count: int
    held_count: int  #: of those, believed now


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Versions that were one attribute of one subject under the folded name `subject` and `attribute`."""

    tenant_id: str
    namespace: Namespace
    subject: str
    attribute: str
    names: tuple[ChainName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """That a version of one name (`newer_id`) ended the belief in a version of another, or was its end."""

    chain: ChainKey
    older_id: str
    newer_id: str
    names: frozenset[tuple[str, str]]  #: the keys of both


class _Version(NamedTuple):
    assertion_id: str
    namespace_id: int
    subject_key: str
    attribute_key: str
    valid_from: int
    valid_to: int
    known_from: int

    @property
    def name(self) -> tuple[str, str]:
        return (self.subject_key, self.attribute_key)


_WIDTH = len(_Version._fields)


async def merged_chains(database: Database, tenant_id: str | None = None) -> Sequence[Chain]:
    """The chains that are merged still, of every tenant or of one."""

    def read(connection: Connection) -> list[Chain]:
        names: dict[ChainKey, set[tuple[str, str]]] = {}
        for link in merged_links(connection, tenant_id):
            names.setdefault(link.chain, set()).update(link.names)
        return [_chain(connection, key, found) for key, found in sorted(names.items())]

    return await database.read(read)


def merged_links(connection: Connection, tenant_id: str | None = None, chain: ChainKey | None = None) -> list[Link]:
    """Pairs of names where one ended, or cut short, what was said of the other, and that are not parted.

    Of every tenant, of one, or of one `chain`, for which only its own namespace is read.
    """
    query = select(succession.c.older_id, succession.c.newer_id).where(succession.c.kind == Succession.PARTED)
    if tenant_id is not None:
        query = query.where(succession.c.tenant_id == tenant_id)
    parted = {(older, newer) for older, newer in connection.execute(query)}
    links = {(each.older_id, each.newer_id): each for each in _cut_short(connection, tenant_id, chain)}
    links |= {(each.older_id, each.newer_id): each for each in _succeeded(connection, tenant_id, chain)}
    return [link for pair, link in links.items() if pair not in parted and chain in {None, link.chain}]


def _succeeded(connection: Connection, tenant_id: str | None, chain: ChainKey | None) -> Iterator[Link]:
    older, newer = assertion.alias(), assertion.alias()
    other_name = or_(older.c.subject_key != newer.c.subject_key, older.c.attribute_key != newer.c.attribute_key)
    query = (
        select(*_columns(older), *_columns(newer))
        .join_from(succession, older, older.c.assertion_id == succession.c.older_id)
        .join(newer, and_(newer.c.assertion_id == succession.c.newer_id, newer.c.namespace_id == older.c.namespace_id))
        .where(other_name, succession.c.kind != Succession.PARTED, published(succession))
        .order_by(succession.c.number)
    )
    if tenant_id is not None:
        query = query.where(succession.c.tenant_id == tenant_id)
    if chain is not None:
        query = query.where(newer.c.namespace_id == chain[0])
    for row in connection.execute(query):
        yield _link(_Version(*row[:_WIDTH]), _Version(*row[_WIDTH:]))


def _cut_short(connection: Connection, tenant_id: str | None, chain: ChainKey | None) -> Iterator[Link]:
    """A statement without an end of its own lasts until the next change known: that was one of another name."""
    # As it was said, and not a later version of it: what is left of one, or believed again, cuts nothing.
    said = assertion.c.assertion_id == assertion.c.root_id
    one = (assertion.c.cardinality == Cardinality.ONE) & (assertion.c.hold == "") & said & published(assertion)
    if tenant_id is not None:
        one &= assertion.c.tenant_id == tenant_id
    if chain is not None:
        one &= assertion.c.namespace_id == chain[0]
    named = select(assertion.c.namespace_id, assertion.c.subject_key, assertion.c.attribute_key).where(one).distinct()
    alike: dict[ChainKey, list[tuple[str, str]]] = {}
    for number, subject, attribute in connection.execute(named):
        alike.setdefault((number, folded(subject), folded(attribute)), []).append((subject, attribute))
    for key, names in alike.items():
        found: list[_Version] = []
        is_wanted = len(names) > 1 and chain in {None, key}
        for subject, attribute in names if is_wanted else ():
            own = (assertion.c.subject_key == subject) & (assertion.c.attribute_key == attribute)
            query = select(*_columns(assertion)).where(one, own, assertion.c.namespace_id == key[0])
            found += [_Version(*row) for row in connection.execute(query.order_by(assertion.c.number))]
        yield from _cuts(found)


def _cuts(versions: Sequence[_Version]) -> Iterator[Link]:
    begun: dict[int, list[_Version]] = {}
    for each in versions:
        begun.setdefault(each.valid_from, []).append(each)
    for each in versions:
        there = begun.get(each.valid_to, [])
        if any(other.name == each.name for other in there):
            continue
        for other in there:
            if other.known_from < each.known_from:
                yield _link(each, other)


def _columns(table: Any) -> list[Any]:
    return [table.c[name] for name in _Version._fields]


def _link(older: _Version, newer: _Version) -> Link:
    return Link(
        chain=(newer.namespace_id, folded(newer.subject_key), folded(newer.attribute_key)),
        older_id=older.assertion_id,
        newer_id=newer.assertion_id,
        names=frozenset({older.name, newer.name}),
    )


def _chain(connection: Connection, key: ChainKey, names: Iterable[tuple[str, str]]) -> Chain:
    number, subject, attribute = key
    place = connection.execute(
        select(namespace.c.tenant_id, namespace.c.labels).where(namespace.c.namespace_id == number)
    ).one()
    return Chain(
        tenant_id=place.tenant_id,
        namespace=tuple(load(place.labels)),
        subject=subject,
        attribute=attribute,
        names=tuple(_counted(connection, number, name) for name in sorted(names)),
    )


def _counted(connection: Connection, number: int, name: tuple[str, str]) -> ChainName:
    is_held: Any = (assertion.c.known_to == FAR_US) & (assertion.c.hold == "")
    counts = connection.execute(
        select(func.count(), func.count().filter(is_held)).where(
            assertion.c.namespace_id == number,
            assertion.c.subject_key == name[0],
            assertion.c.attribute_key == name[1],
            published(assertion),
        )
    ).one()
    return ChainName(subject=name[0], attribute=name[1], version_count=counts[0], held_count=counts[1])
