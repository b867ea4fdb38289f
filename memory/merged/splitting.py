"""Parting a chain of versions by hand: each name gets the timeline of its own statements, all in one transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import Connection, select

from threadmark.memory.merged.merged_chains import Link, merged_links
from threadmark.memory.merged.replay import Retraction, Said, replayed
from threadmark.memory.model.assertion import Cardinality, Closing
from threadmark.memory.model.instants import FAR_US
from threadmark.memory.model.provenance import Change, Role, by
from threadmark.memory.model.scope import Scope, namespace_key
from threadmark.memory.model.timeline import Succession
from threadmark.memory.store.database import Database
from threadmark.memory.store.pending import published
from threadmark.memory.store.statements import chunks, insert_version, lock_attribute, rows, succeed
from threadmark.memory.store.tables import assertion, namespace, succession
from threadmark.memory.text.terms import folded
from threadmark.memory.write.revisions import note
from threadmark.memory.write.versions import (
    close,
    copy_of,
    has_expired,
    held_versions,
    make_way,
)

__all__ = ["SplitName", "split_chain"]

Row = dict[str, Any]
Name = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitName:
    """One name of a chain that was parted: how many of its versions ceased and began to be believed."""

    subject: str
    attribute: str
    ended: int
    begun: int


class _Shown(Exception):
    """A dry run: what would have been done."""

    def __init__(self, names: list[SplitName]) -> None:
        super().__init__(names)
        self.names = names


async def split_chain(
    database: Database, scope: Scope, subject: str, attribute: str, *, change: Change, dry_run: bool = False
) -> Sequence[SplitName]:
    """Part the chain of exactly the scope's namespace that `subject` and `attribute` belong to when they are folded.

    What it changed, by name; nothing where nothing is merged. A dry run changes nothing. Statements keep their sources
    and what was believed of them before.
    """

    name = (folded(subject), folded(attribute))
    # Before the writer's turn: whoever parts the chain meanwhile is noticed under the locks.
    links = await database.read(partial(_links, scope=scope, folded_name=name))

    def unit(connection: Connection) -> list[SplitName]:
        found = _split(connection, scope, name, links, change)
        if dry_run:
            raise _Shown(found)
        return found

    try:
        return await database.write(unit)
    except _Shown as shown:
        return shown.names


def _split(
    connection: Connection, scope: Scope, folded_name: Name, links: Sequence[Link], change: Change
) -> list[SplitName]:
    number = _place(connection, scope)
    if number is None:
        return []
    locked: set[Name] = set()
    while new := {name for link in links for name in link.names} - locked:
        for name in sorted(new):
            lock_attribute(connection, scope.tenant_id, number, *name)
        locked |= new
        # Under the locks: others may have written to it meanwhile, or parted it.
        links = _links(connection, scope, folded_name)
    names = sorted({name for link in links for name in link.names})
    versions = {name: _versions(connection, number, name) for name in names}
    made = [_part(connection, number, name, versions, change) for name in names]
    at = by(change)["now"]
    succeed(connection, scope.tenant_id, at, [(link.older_id, link.newer_id, Succession.PARTED) for link in links])
    return made


def _place(connection: Connection, scope: Scope) -> int | None:
    """The number of exactly the scope's namespace."""
    query = select(namespace.c.namespace_id).where(
        namespace.c.tenant_id == scope.tenant_id, namespace.c.labels == namespace_key(scope.namespace)
    )
    number = connection.scalar(query)
    return None if number is None else int(number)


def _links(connection: Connection, scope: Scope, folded_name: Name) -> list[Link]:
    number = _place(connection, scope)
    return [] if number is None else merged_links(connection, scope.tenant_id, (number, *folded_name))


def _versions(connection: Connection, number: int, name: Name) -> list[Row]:
    query = select(assertion).where(
        assertion.c.namespace_id == number,
        assertion.c.subject_key == name[0],
        assertion.c.attribute_key == name[1],
        assertion.c.cardinality == Cardinality.ONE,
        assertion.c.hold == "",
        published(assertion),
    )
    return rows(connection, query.order_by(assertion.c.number))


def _part(
    connection: Connection, number: int, name: Name, versions: dict[Name, list[Row]], change: Change
) -> SplitName:
    """Believe of one name what its own statements say."""
    own, now = versions[name], by(change)["now"]
    latest = {row["root_id"]: row for row in own}
    others = [row for other, found in versions.items() if other != name for row in found]
    cuts = {row[end] for row in others for end in ("valid_from", "valid_to")}
    wanted = {
        (each.root_id, each.valid_from, each.valid_to): each
        for each in replayed(_events(connection, own, cuts))
        if not has_expired(latest[each.root_id], now)
    }
    believed = held_versions(connection, number, *name)
    held = {_key(row): row for row in believed if not has_expired(row, now)}
    ended = [row for key, row in held.items() if key not in wanted]
    begun = [piece for key, piece in wanted.items() if key not in held]
    at = max([now, *(row["known_from"] + 1 for row in believed)])
    if ended:
        close(connection, ended, Closing.SUPERSEDED, None, at)
    if begun:
        again = [copy_of(latest[piece.root_id], piece.valid_from, piece.valid_to, at) for piece in begun]
        make_way(connection, [row for row in believed if has_expired(row, now)], again[0]["assertion_id"], at)
        for row in again:
            insert_version(connection, row)
            note(connection, row, Role.RESTORES, by=change.by, trust=change.trust, at=at)
            shorter = [each["assertion_id"] for each in ended if each["root_id"] == row["root_id"]]
            succeed(
                connection,
                row["tenant_id"],
                at,
                [(each, row["assertion_id"], Succession.SUPERSEDES) for each in shorter],
            )
    return SplitName(subject=name[0], attribute=name[1], ended=len(ended), begun=len(begun))


def _events(connection: Connection, own: Sequence[Row], cuts: set[int]) -> list[Said | Retraction]:
    """What was said of a name, and taken back. What was left of a longer version, or restored, says nothing new."""
    linked: set[tuple[str, str]] = set()
    for part in chunks([row["assertion_id"] for row in own]):
        pairs = select(succession.c.newer_id, succession.c.kind).where(succession.c.newer_id.in_(part))
        linked.update((newer, kind) for newer, kind in connection.execute(pairs))
    events: list[Said | Retraction] = []
    for row in own:
        is_renewal = (row["assertion_id"], Succession.RENEWS) in linked and (
            row["assertion_id"],
            Succession.REMAINS,
        ) not in linked
        if (row["assertion_id"] != row["root_id"] and not is_renewal) or row["closing"] == Closing.UNDONE:
            continue
        # It ends where the other name began or ended: it was cut there, and had no end of its own.
        is_open = row["valid_to"] == FAR_US or row["valid_to"] in cuts
        end = None if is_open else row["valid_to"]
        events.append(Said(root_id=row["root_id"], at=row["known_from"], valid_from=row["valid_from"], valid_to=end))
    last = {row["root_id"]: row for row in sorted(own, key=lambda row: (row["known_to"], row["number"]))}
    events += [
        Retraction(root_id=root_id, at=row["known_to"])
        for root_id, row in last.items()
        if row["closing"] == Closing.RETRACTED
    ]
    return events


def _key(row: Row) -> tuple[str, int, int]:
    return (row["root_id"], row["valid_from"], row["valid_to"])
