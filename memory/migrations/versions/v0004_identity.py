"""Names are compared exactly, by NFC: keys and digests made anew from the words of the rows.

What was merged while names were compared folded stays as it is: who superseded whom, and the sources. Nothing is split.
Two encodings of one name, which were two names before, become one; where both held a belief about the same, the older
one is kept apart (`hold = 'conflict'`) until somebody approves it.
"""

import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

from threadmark.memory.text.identity import identity_key, identity_labels
from threadmark.memory.write.preparation import named_speaker, subject_key
from threadmark.memory.write.statement_digest import renewed_digest

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

PAGE_COUNT = 1_000
FAR_US = 4611686018427387904
OPEN = "valid_to = 4611686018427387904 AND known_to = 4611686018427387904 AND hold = ''"
ONE_CURRENT = OPEN + " AND cardinality = 'one'"
HELD_ONCE = OPEN + " AND (cardinality IS NULL OR cardinality <> 'one')"
TOLD_ONCE = "once = 1"
#: The unique indexes, which must not see the rows half changed.
INDEXES = {
    "memory_assertion_one_current": (
        "memory_assertion",
        ["namespace_id", "subject_key", "attribute_key"],
        sa.text(ONE_CURRENT),
    ),
    "memory_assertion_held_once": ("memory_assertion", ["namespace_id", "digest"], sa.text(HELD_ONCE)),
    "memory_evidence_once": ("memory_evidence", ["namespace_id", "origin_key", "digest", "role"], sa.text(TOLD_ONCE)),
}
Row = dict[str, Any]
#: By the old number of a namespace: the one that has its name now, and its labels as they were sent.
Moved = dict[int, tuple[int, str]]
Names = tuple[int, str | None, str | None]


def upgrade() -> None:
    op.add_column("memory_assertion", sa.Column("said_by", sa.String(), nullable=True))
    op.add_column("memory_assertion", sa.Column("spelled_labels", sa.Text(), nullable=True))
    op.add_column("memory_evidence", sa.Column("actor_key", sa.String(), nullable=True))
    op.drop_index("memory_evidence_by_actor", table_name="memory_evidence")
    op.create_index("memory_evidence_by_actor_key", "memory_evidence", ["tenant_id", "actor_key"])
    for name, (table, _, _) in INDEXES.items():
        op.drop_index(name, table_name=table)
    moved = _merge_namespaces()
    _rekey_evidence(_rekey_assertions(moved), moved)
    _declare_each_spelling()
    # Writers queue for the row of a name; it is made where it is missing.
    op.execute(_table("memory_attribute_lock").delete())
    for name, (table, columns, condition) in INDEXES.items():
        op.create_index(name, table, columns, unique=True, sqlite_where=condition, postgresql_where=condition)


def downgrade() -> None:
    # The keys stay exact: what is held under them would collide if names were folded again.
    op.drop_index("memory_evidence_by_actor_key", table_name="memory_evidence")
    op.create_index("memory_evidence_by_actor", "memory_evidence", ["tenant_id", "actor"])
    op.drop_column("memory_evidence", "actor_key")
    op.drop_column("memory_assertion", "spelled_labels")
    op.drop_column("memory_assertion", "said_by")


def _merge_namespaces() -> Moved:
    """Give every namespace the spelling that is compared; two encodings of one become one."""
    connection, namespace, prefix = op.get_bind(), _table("memory_namespace"), _table("memory_namespace_prefix")
    every = connection.execute(sa.select(namespace).order_by(namespace.c.namespace_id)).all()
    numbers = {(each.tenant_id, each.labels): each.namespace_id for each in every}
    moved: Moved = {}
    for number, tenant_id, labels in every:
        exact = identity_labels(json.loads(labels))
        if (spelled := _spelled(exact)) == labels:
            continue
        target = numbers.setdefault((tenant_id, spelled), number)
        moved[number] = (target, labels)
        connection.execute(prefix.delete().where(prefix.c.namespace_id == number))
        same = namespace.c.namespace_id == number
        if target != number:
            connection.execute(namespace.delete().where(same))
            continue
        connection.execute(namespace.update().where(same).values(labels=spelled))
        places = [_spelled(exact[:depth]) for depth in range(len(exact) + 1)]
        connection.execute(
            prefix.insert(), [{"tenant_id": tenant_id, "prefix": place, "namespace_id": number} for place in places]
        )
    return moved


def _rekey_assertions(moved: Moved) -> dict[tuple[str, str], str]:
    """Write keys and digests anew; the new digest by statement and old digest."""
    connection, assertion, outbox = op.get_bind(), _table("memory_assertion"), _table("memory_outbox")
    apart = _held_twice(moved)
    renewed: dict[tuple[str, str], str] = {}
    for page in _pages(assertion):
        changed: list[Row] = []
        queued: list[Row] = []
        for row in page:
            number, labels = moved.get(row["namespace_id"], (row["namespace_id"], None))
            new = _keys(row) | {
                "namespace_id": number,
                "digest": renewed_digest(row),
                "said_by": named_speaker(row["kind"], json.loads(row["text"])),
                "spelled_labels": labels,
                "hold": "conflict" if row["number"] in apart else row["hold"],
            }
            if new["digest"] != row["digest"]:
                renewed[row["root_id"], row["digest"]] = new["digest"]
            if any(value != row[name] for name, value in new.items()):
                changed.append(new | {"at": row["number"]})
            if labels is not None or row["number"] in apart:
                entry = {"tenant_id": row["tenant_id"], "entry": row["number"], "namespace_id": number}
                queued.append(entry | {"due_at": 0, "attempt": 0})
        _change(assertion, changed)
        if queued:
            connection.execute(outbox.insert(), queued)
    for number, (target, _) in moved.items():
        connection.execute(outbox.update().where(outbox.c.namespace_id == number).values(namespace_id=target))
    return renewed


def _held_twice(moved: Moved) -> set[int]:
    """The beliefs that stand under one name now, beside newer ones that stood under another encoding of it."""
    assertion = _table("memory_assertion")
    items = (row["subject"] for page in _pages(assertion, assertion.c.kind == "item") for row in page)
    if not moved and all(each is None or each == identity_key(each) for each in items):
        return set()
    newest: dict[object, dict[Names, tuple[int, int]]] = {}
    members: dict[tuple[object, Names], list[int]] = {}
    for page in _pages(assertion, (assertion.c.known_to == FAR_US) & (assertion.c.hold == "")):
        for row in page:
            number, _ = moved.get(row["namespace_id"], (row["namespace_id"], None))
            if row["cardinality"] == "one":
                place: object = (number, *_keys(row).values())
            elif row["valid_to"] == FAR_US:
                place = (number, renewed_digest(row))
            else:
                continue
            old = (row["namespace_id"], row["subject_key"], row["attribute_key"])
            since = (row["known_from"], row["number"])
            by_name = newest.setdefault(place, {})
            by_name[old] = max(since, by_name.get(old, since))
            members.setdefault((place, old), []).append(row["number"])
    return {
        number
        for place, by_name in newest.items()
        for old, since in by_name.items()
        if since != max(by_name.values())
        for number in members[place, old]
    }


def _rekey_evidence(renewed: dict[tuple[str, str], str], moved: Moved) -> None:
    once: set[tuple[Any, ...]] = set()
    evidence = _table("memory_evidence")
    for page in _pages(evidence):
        changed: list[Row] = []
        for row in page:
            new = {
                "namespace_id": moved.get(row["namespace_id"], (row["namespace_id"], ""))[0],
                "digest": renewed.get((row["root_id"], row["digest"]), row["digest"]),
                "actor_key": None if row["actor"] is None else identity_key(row["actor"]),
                "once": row["once"],
            }
            if moved and row["once"]:
                told = (new["namespace_id"], row["origin_key"], new["digest"], row["role"])
                new["once"] = int(told not in once)
                once.add(told)
            if any(value != row[name] for name, value in new.items()):
                changed.append(new | {"at": row["number"]})
        _change(evidence, changed)


def _declare_each_spelling() -> None:
    """A declaration held for every spelling of its folded name: each one that is in use gets its own.

    The folded name keeps it too: nobody knows how a name was spelled of which no memory is left.
    """
    connection, attribute, assertion = op.get_bind(), _table("memory_attribute"), _table("memory_assertion")
    known = connection.execute(sa.select(attribute.c.tenant_id, attribute.c.attribute_key)).all()
    used = sa.select(assertion.c.tenant_id, assertion.c.attribute_key, assertion.c.cardinality).distinct()
    found = connection.execute(used.where(assertion.c.attribute_key.is_not(None), assertion.c.cardinality.is_not(None)))
    declared = set(map(tuple, known))
    for tenant_id, key, cardinality in found.all():
        if (tenant_id, key) not in declared:
            declared.add((tenant_id, key))
            new = {"tenant_id": tenant_id, "attribute_key": key, "cardinality": cardinality}
            connection.execute(attribute.insert(), new)


def _keys(row: Row) -> Row:
    return {
        "subject_key": subject_key(row["kind"], row["subject"]),
        "attribute_key": None if row["attribute"] is None else identity_key(row["attribute"]),
    }


def _table(name: str) -> sa.Table:
    return sa.Table(name, sa.MetaData(), autoload_with=op.get_bind())


def _pages(table: sa.Table, *conditions: sa.ColumnElement[bool]) -> Iterator[list[Row]]:
    connection, after = op.get_bind(), 0
    query = sa.select(table).where(*conditions).order_by(table.c.number).limit(PAGE_COUNT)
    while found := [row._asdict() for row in connection.execute(query.where(table.c.number > after))]:
        yield found
        after = found[-1]["number"]


def _change(table: sa.Table, rows: list[Row]) -> None:
    if rows:
        op.get_bind().execute(table.update().where(table.c.number == sa.bindparam("at")), rows)


def _spelled(labels: tuple[str, ...]) -> str:
    return json.dumps(list(labels), ensure_ascii=False, separators=(",", ":"))
