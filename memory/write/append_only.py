"""Remembering statements that end no other belief: texts, turns, events, one of many values. Many in few queries.

What is looked up for one draft is looked up for all of them at once, and what is new is inserted at once: a turn costs
less than its commit.
"""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, bindparam, insert, literal, select

from threadmark.memory.model.admission import hold_for
from threadmark.memory.model.assertion import Cardinality, Disposition, Verdict
from threadmark.memory.model.prepared import Prepared
from threadmark.memory.model.provenance import Role
from threadmark.memory.store.job_tables import outbox
from threadmark.memory.store.pending import make_moment_free, without_pending
from threadmark.memory.store.rows import evidence_row, version_row
from threadmark.memory.store.statements import (
    IS_KNOWN,
    add_evidence,
    chunks,
    earlier_verdict,
    namespace_ids,
    rows,
    strengthened,
)
from threadmark.memory.store.tables import assertion, evidence
from threadmark.memory.write.conversation import Conversations
from threadmark.memory.write.quarantine import held_selectors, is_named
from threadmark.memory.write.versions import has_expired, make_way, widened

__all__ = ["remember_plain"]

Row = dict[str, Any]
Key = tuple[int, str, bool]
_RECORDED = select(
    evidence.c.namespace_id, evidence.c.origin_key, evidence.c.digest, evidence.c.number, evidence.c.import_number
).where(
    evidence.c.namespace_id.in_(bindparam("namespaces", expanding=True)),
    evidence.c.origin_key.in_(bindparam("keys", expanding=True)),
)
_HELD = (
    select(assertion)
    .where(
        assertion.c.namespace_id.in_(bindparam("namespaces", expanding=True)),
        assertion.c.digest.in_(bindparam("keys", expanding=True)),
        IS_KNOWN,
    )
    # What lasts longest is what a repetition meets; in one order for all who lock them.
    .order_by(assertion.c.expires_at.desc(), assertion.c.number)
    .with_for_update()
)
_NUMBERS = select(assertion.c.assertion_id, assertion.c.number).where(
    assertion.c.assertion_id.in_(bindparam("keys", expanding=True))
)
_INSERT = insert(assertion).inline()
_QUEUE = insert(outbox).from_select(
    ["tenant_id", "entry", "namespace_id", "due_at", "attempt"],
    select(assertion.c.tenant_id, assertion.c.number, assertion.c.namespace_id, literal(0), literal(0)).where(
        assertion.c.assertion_id.in_(bindparam("keys", expanding=True))
    ),
)


class _Run:
    """Drafts of one transaction: what is known of them, and what is to be inserted."""

    def __init__(self, connection: Connection, items: Sequence[Prepared]) -> None:
        self._connection = connection
        self._numbers = namespace_ids(connection, items[0].tenant_id, (item.draft.namespace for item in items))
        self._selectors = held_selectors(connection, items[0].tenant_id)
        self._recorded = self._all_recorded(items)
        self._held = self._all_held(items)
        self._conversations = Conversations(connection)
        self._versions: list[Row] = []
        self._evidence: list[Row] = []

    def remember(self, item: Prepared, cardinality: Cardinality | None) -> Verdict:
        """Decide about one draft; what it adds is inserted by `finish`."""
        number = self._numbers[item.draft.namespace]
        moment = (number, item.origin_key, item.digest)
        if is_repeated := item.origin_key is not None and moment in self._recorded:
            self._settle()
            if (verdict := earlier_verdict(self._connection, number, item)) is not None:
                return verdict
        self._recorded.add(moment)
        source_held = is_named(self._selectors, item.draft.origin)
        hold = hold_for(item.draft.trust, item.draft.namespace, (), source_held=source_held)
        key = (number, item.digest, bool(hold))
        held = self._held.get(key)
        if held is not None and not _has_ended(held, item.now):
            return self._merge(key, item, held)
        row = version_row(item, str(uuid4()), number, cardinality) | {"hold": hold}
        row |= self._conversations.place(row)
        if held is not None:
            # The same statement goes on under its root, with the sources that it had.
            row |= {"root_id": held["root_id"], "known_from": max(item.now, held["known_from"] + 1)}
            make_way(self._connection, [held], row["assertion_id"], row["known_from"])
        self._held[key] = row
        self._versions.append(row)
        if held is None or not is_repeated:
            self._add_source(item, row, once=not is_repeated)
        disposition = Disposition.QUARANTINED if hold else Disposition.ADDED
        return Verdict(assertion_id=row["assertion_id"], disposition=disposition, hold=hold)

    def finish(self) -> None:
        """Insert what is new, and queue its index entries."""
        if self._versions:
            self._connection.execute(_INSERT, self._versions)
            for part in chunks([row["assertion_id"] for row in self._versions]):
                self._connection.execute(_QUEUE, {"keys": part})
        add_evidence(self._connection, self._evidence)
        self._versions, self._evidence = [], []

    def _settle(self) -> None:
        """Insert what is new, and go on with those rows as with any others."""
        inserted = {row["assertion_id"]: row for row in self._versions}
        self.finish()
        for part in chunks(list(inserted)):
            for assertion_id, number in self._connection.execute(_NUMBERS, {"keys": part}):
                inserted[assertion_id]["number"] = number

    def _merge(self, key: Key, item: Prepared, row: Row) -> Verdict:
        """Add a moment to a statement that is held. It was true since it was first observed, and lasts as long as the
        word that lasts longest."""
        self._add_source(item, row)
        if item.valid_from < row["valid_from"]:
            if _is_new(row):
                row["valid_from"] = item.valid_from
            else:
                row = self._held[key] = widened(self._connection, row, item.valid_from, item.now)
        strengthened(self._connection, row, item)
        disposition = Disposition.QUARANTINED if row["hold"] else Disposition.DUPLICATE
        return Verdict(assertion_id=row["assertion_id"], disposition=disposition, hold=row["hold"])

    def _add_source(self, item: Prepared, row: Row, *, once: bool = True) -> None:
        source = evidence_row(item, row["root_id"], row["namespace_id"], Role.SUPPORTS, item.now)
        if once:
            self._evidence.append(source)
        else:
            add_evidence(self._connection, [source], once=False)

    def _all_recorded(self, items: Sequence[Prepared]) -> set[tuple[int, str | None, str]]:
        keys = sorted({item.origin_key for item in items if item.origin_key is not None})
        found: set[tuple[int, str | None, str]] = set()
        for part in chunks(keys):
            values = {"namespaces": [*self._numbers.values()], "keys": part}
            sources = self._connection.execute(_RECORDED, values).all()
            free = make_moment_free(self._connection, [(row.number, row.import_number) for row in sources])
            found.update(tuple(row[:3]) for row in sources if row.number not in free)
        return found

    def _all_held(self, items: Sequence[Prepared]) -> dict[Key, Row]:
        found: dict[Key, Row] = {}
        for part in chunks(sorted({item.digest for item in items})):
            values = {"namespaces": [*self._numbers.values()], "keys": part}
            for row in without_pending(self._connection, rows(self._connection, _HELD, values)):
                found.setdefault((row["namespace_id"], row["digest"], bool(row["hold"])), row)
        return found


def _is_new(row: Row) -> bool:
    """Whether this transaction has it in hand and has not inserted it: it was not believed before."""
    return "number" not in row


def _has_ended(row: Row, now: int) -> bool:
    return not _is_new(row) and has_expired(row, now)


def remember_plain(connection: Connection, items: Iterable[tuple[Prepared, Cardinality | None]]) -> list[Verdict]:
    """Hold each statement, or add its moment to the one that is held already; in their order."""
    given = list(items)
    run = _Run(connection, [item for item, _ in given])
    verdicts = [run.remember(item, cardinality) for item, cardinality in given]
    run.finish()
    return verdicts
