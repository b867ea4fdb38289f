"""The rows of memory. Private to the package: everything outside speaks in domain values.

Instants are epoch microseconds, texts and values JSON text (so that NUL survives on PostgreSQL), an open interval
ends at `FAR_US`. Rows of `memory_assertion` are not edited: what may change is how long they are believed, why not any
longer, whether they are kept apart, how far they are trusted and when they expire.
"""

from typing import Any, cast

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TextClause,
    UniqueConstraint,
    text,
)
from sqlmodel import Field, SQLModel

from threadmark.memory.model.instants import FAR_US

__all__ = [
    "BIG",
    "METADATA",
    "Row",
    "assertion",
    "attribute",
    "attribute_lock",
    "big",
    "by_import",
    "evidence",
    "import_number",
    "long_text",
    "namespace",
    "namespace_prefix",
    "number_column",
    "partial",
    "quarantine",
    "succession",
    "table",
]

METADATA = MetaData()
BIG = BigInteger().with_variant(Integer, "sqlite")


def partial(name: str, *columns: str, where: TextClause, unique: bool = False) -> Index:
    return Index(name, *columns, unique=unique, sqlite_where=where, postgresql_where=where)


def number_column() -> Any:
    return Field(default=None, sa_column=Column(BIG, primary_key=True, autoincrement=True))


def big() -> Any:
    return Field(sa_column=Column(BIG, nullable=False))


def long_text() -> Any:
    return Field(sa_column=Column(Text, nullable=False))


def import_number() -> Any:
    """The import that staged a row; readers do not see the row until the import is published (see `pending`)."""
    return Field(default=None, sa_column=Column(BIG))


def by_import(name: str) -> Index:
    return partial(f"{name}_by_import", "import_number", "number", where=text("import_number IS NOT NULL"))


def table(row: type[SQLModel]) -> Table:
    """The Core table of a row class."""
    return cast(Table, getattr(row, "__table__"))  # noqa: B009 - mypy knows no such attribute


class Row(SQLModel):
    """Base of all rows of memory."""

    metadata = METADATA


class NamespaceRow(Row, table=True):
    """A namespace that was ever written to; `labels` is its canonical JSON, in the spelling that is compared."""

    __tablename__ = "memory_namespace"
    __table_args__ = (UniqueConstraint("tenant_id", "labels"), {"sqlite_autoincrement": True})
    namespace_id: int = number_column()
    tenant_id: str = long_text()
    labels: str = long_text()


class NamespacePrefixRow(Row, table=True):
    """That a scope covers a namespace: prefixes are rows, so that a prefix match is an equality."""

    __tablename__ = "memory_namespace_prefix"
    __table_args__ = (Index("memory_namespace_by_prefix", "tenant_id", "prefix", "namespace_id", unique=True),)
    number: int = number_column()
    tenant_id: str = long_text()
    prefix: str = long_text()
    namespace_id: int = big()


class AttributeRow(Row, table=True):
    """How many values an attribute has at one instant, as first declared."""

    __tablename__ = "memory_attribute"
    __table_args__ = (UniqueConstraint("tenant_id", "attribute_key"),)
    number: int = number_column()
    tenant_id: str = long_text()
    attribute_key: str = long_text()
    cardinality: str


class AttributeLockRow(Row, table=True):
    """The row that writers of one attribute of one subject queue for."""

    __tablename__ = "memory_attribute_lock"
    __table_args__ = (UniqueConstraint("namespace_id", "subject_key", "attribute_key"),)
    number: int = number_column()
    tenant_id: str = long_text()
    namespace_id: int = big()
    subject_key: str = long_text()
    attribute_key: str = long_text()
    change_count: int = big()


_OPEN = f"valid_to = {FAR_US} AND known_to = {FAR_US} AND hold = ''"


class AssertionRow(Row, table=True):
    """One version of a statement."""

    __tablename__ = "memory_assertion"
    __table_args__ = (
        UniqueConstraint("assertion_id"),
        # The database's own word on "one current version" and on "held once".
        partial(
            "memory_assertion_one_current",
            "namespace_id",
            "subject_key",
            "attribute_key",
            where=text(f"{_OPEN} AND cardinality = 'one'"),
            unique=True,
        ),
        partial(
            "memory_assertion_held_once",
            "namespace_id",
            "digest",
            where=text(f"{_OPEN} AND (cardinality IS NULL OR cardinality <> 'one')"),
            unique=True,
        ),
        partial("memory_assertion_known", "namespace_id", "digest", where=text(f"known_to = {FAR_US}")),
        Index("memory_assertion_by_attribute", "namespace_id", "subject_key", "attribute_key", "known_to"),
        Index("memory_assertion_by_namespace", "namespace_id", "number"),
        Index("memory_assertion_by_root", "root_id"),
        partial("memory_assertion_by_previous", "previous_id", where=text("previous_id IS NOT NULL")),
        partial(
            "memory_assertion_by_thread", "namespace_id", "thread_ref", "number", where=text("thread_ref IS NOT NULL")
        ),
        partial("memory_assertion_expiring", "expires_at", where=text(f"expires_at < {FAR_US}")),
        by_import("memory_assertion"),
        {"sqlite_autoincrement": True},
    )
    number: int = number_column()
    assertion_id: str = long_text()
    root_id: str = long_text()
    tenant_id: str = long_text()
    namespace_id: int = big()
    text: str = long_text()
    kind: str = long_text()
    subject: str | None = None
    attribute: str | None = None
    subject_key: str | None = None
    attribute_key: str | None = None
    value: str = long_text()
    cardinality: str | None = None
    valid_from: int = big()
    valid_to: int = big()
    known_from: int = big()
    known_to: int = big()
    observed_at: int = big()
    expires_at: int = big()
    confidence: float = Field(sa_column=Column(Float, nullable=False))
    trust: str
    asserted_by: str = long_text()
    extractor: str | None = None
    hold: str
    closing: str | None = None
    reason: str | None = None
    digest: str
    speaker: str | None = None
    #: Whom a raw turn names as its speaker in its words.
    said_by: str | None = None
    #: The labels of the namespace as they were sent, where that is not how they are compared.
    spelled_labels: str | None = Field(default=None, sa_column=Column(Text))
    thread_ref: str | None = None
    run_ref: str | None = None
    session: str | None = None
    previous_id: str | None = None
    says_when: bool
    terms: str = long_text()
    import_number: int | None = import_number()


class EvidenceRow(Row, table=True):
    """One source of an assertion and of all its later versions (`root_id`); append-only."""

    __tablename__ = "memory_evidence"
    __table_args__ = (
        UniqueConstraint("evidence_id"),
        Index("memory_evidence_by_root", "root_id", "number"),
        Index("memory_evidence_by_origin", "namespace_id", "origin_key", "digest"),
        Index("memory_evidence_by_thread", "tenant_id", "thread_ref"),
        Index("memory_evidence_by_run", "tenant_id", "run_ref"),
        Index("memory_evidence_by_message", "tenant_id", "message_ref"),
        Index("memory_evidence_by_actor_key", "tenant_id", "actor_key"),
        # A job that runs twice tells its moment once.
        partial(
            "memory_evidence_once", "namespace_id", "origin_key", "digest", "role", where=text("once = 1"), unique=True
        ),
        by_import("memory_evidence"),
        {"sqlite_autoincrement": True},
    )
    number: int = number_column()
    evidence_id: str = long_text()
    root_id: str = long_text()
    tenant_id: str = long_text()
    namespace_id: int = big()
    digest: str = long_text()
    origin_key: str | None = None
    once: int = 0
    role: str
    trust: str
    observed_at: int = big()
    recorded_at: int = big()
    asserted_by: str = long_text()
    extractor: str | None = None
    thread_ref: str | None = None
    run_ref: str | None = None
    seq: int | None = Field(default=None, sa_column=Column(BIG))
    message_ref: str | None = None
    actor: str | None = None
    actor_key: str | None = None
    origin_at: int | None = Field(default=None, sa_column=Column(BIG))
    content_hash: str | None = None
    char_from: int | None = Field(default=None, sa_column=Column(BIG))
    char_to: int | None = Field(default=None, sa_column=Column(BIG))
    quote: str | None = Field(default=None, sa_column=Column(Text))
    import_number: int | None = import_number()


class SuccessionRow(Row, table=True):
    """That a version ended the belief in another, or carries on what was left of it."""

    __tablename__ = "memory_succession"
    __table_args__ = (
        Index("memory_succession_by_newer", "newer_id"),
        Index("memory_succession_by_older", "older_id"),
        by_import("memory_succession"),
    )
    number: int = number_column()
    tenant_id: str = long_text()
    older_id: str = long_text()
    newer_id: str = long_text()
    kind: str
    at: int = big()
    import_number: int | None = import_number()


class QuarantineRow(Row, table=True):
    """A source whose words are kept apart, until it is released."""

    __tablename__ = "memory_quarantine"
    __table_args__ = (Index("memory_quarantine_by_tenant", "tenant_id", "released_at"),)
    number: int = number_column()
    quarantine_id: str = long_text()
    tenant_id: str = long_text()
    selector: str = long_text()
    reason: str = long_text()
    at: int = big()
    released_at: int = big()


assertion = table(AssertionRow)
attribute = table(AttributeRow)
attribute_lock = table(AttributeLockRow)
evidence = table(EvidenceRow)
namespace = table(NamespaceRow)
namespace_prefix = table(NamespacePrefixRow)
quarantine = table(QuarantineRow)
succession = table(SuccessionRow)
