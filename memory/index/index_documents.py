"""What index entries are made from, read from the database."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from threadmark.memory.index.index import Entry, Tags, Vector, tags_of
from threadmark.memory.model.assertion import ITEM
from threadmark.memory.model.instants import FAR_US
from threadmark.memory.model.scope import Scope
from threadmark.memory.model.values import canonical, load
from threadmark.memory.store.assertion_queries import words_of
from threadmark.memory.store.pending import published
from threadmark.memory.store.statements import chunks, rows
from threadmark.memory.store.tables import assertion, namespace
from threadmark.memory.text.bm25 import CONTEXT_LENGTH, TEXT_LENGTH, weights
from threadmark.memory.text.terms import folded
from threadmark.memory.write.preparation import dense_text

__all__ = ["IndexDocument", "index_documents", "page"]

_NAMES = (
    "number assertion_id tenant_id text kind subject subject_key attribute trust speaker thread_ref run_ref "
    "previous_id hold known_to terms"
)
_QUERY = (
    select(*(assertion.c[name] for name in _NAMES.split()), namespace.c.labels)
    .join(namespace, namespace.c.namespace_id == assertion.c.namespace_id)
    # Unpublished entries would take the places of entries that can be an answer.
    .where(published(assertion))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDocument:
    """An entry but for its vector."""

    number: int
    assertion_id: str
    tags: Tags
    words: Sequence[str]
    words_before: Sequence[str]
    dense_text: str

    @property
    def digest(self) -> str:
        """Of everything that the entry is made from."""
        parts = [self.assertion_id, sorted(self.tags), list(self.words), list(self.words_before), self.dense_text]
        return hashlib.sha256(canonical(parts).encode()).hexdigest()[:32]

    def entry(self, dense: Vector | None) -> Entry:
        """The entry."""
        return Entry(
            number=self.number,
            tags=self.tags,
            digest=self.digest,
            text=weights(self.words, TEXT_LENGTH),
            context=weights([*self.words_before, *self.words], CONTEXT_LENGTH),
            dense=dense,
        )


def index_documents(connection: Connection, numbers: Sequence[int]) -> list[IndexDocument]:
    """Those of the assertions that are there."""
    found: list[dict[str, Any]] = []
    for part in chunks(numbers):
        found.extend(rows(connection, _QUERY.where(assertion.c.number.in_(part))))
    return _made(connection, found)


def page(connection: Connection, after: int, count_max: int) -> list[IndexDocument]:
    """Those of the next assertions after a number."""
    query = _QUERY.where(assertion.c.number > after).order_by(assertion.c.number).limit(count_max)
    return _made(connection, rows(connection, query))


def _made(connection: Connection, found: Sequence[dict[str, Any]]) -> list[IndexDocument]:
    before = words_of(connection, sorted({row["previous_id"] for row in found if row["previous_id"] is not None}))
    return [
        IndexDocument(
            number=row["number"],
            assertion_id=row["assertion_id"],
            tags=_tags(row),
            words=row["terms"].split(),
            words_before=before.get(row["previous_id"] or "", []),
            dense_text=dense_text(load(row["text"]), row["speaker"]),
        )
        for row in found
    ]


def _subject(row: dict[str, Any]) -> str | None:
    """Folded: the index proposes every name that may be meant, and the database compares names exactly."""
    if row["subject"] is None:
        return None
    return str(row["subject_key"]) if row["kind"] == ITEM else folded(row["subject"])


def _tags(row: dict[str, Any]) -> Tags:
    labels = {
        "kind": row["kind"],
        "subject": _subject(row),
        "attribute": None if row["attribute"] is None else folded(row["attribute"]),
        "trust": row["trust"],
        "actor": row["speaker"],
        "thread_ref": row["thread_ref"],
        "run_ref": row["run_ref"],
    }
    scope = Scope(tenant_id=row["tenant_id"], namespace=tuple(load(row["labels"])))
    return tags_of(scope, is_known=row["known_to"] == FAR_US, hold=row["hold"], labels=labels)
