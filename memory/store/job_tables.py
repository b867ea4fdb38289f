"""More rows of memory: what is derived from assertions, and what jobs and questions leave behind.

Every table stands in `INVENTORY`, which erasure and export go by: one that is missing there fails the tests.
"""

from enum import StrEnum

from sqlalchemy import Column, Index, Text, UniqueConstraint, text
from sqlmodel import Field

from threadmark.memory.store.import_tables import ImportRow, StagedLineRow
from threadmark.memory.store.tables import (
    BIG,
    METADATA,
    Row,
    big,
    by_import,
    import_number,
    long_text,
    number_column,
    partial,
    table,
)

__all__ = ["INVENTORY", "METADATA", "Keeps", "erasure", "outbox", "recall_log", "receipt", "space", "tombstone"]


class OutboxRow(Row, table=True):
    """An index entry that is behind (`entry`: its assertion's number); written in the transaction of the change."""

    __tablename__ = "memory_outbox"
    __table_args__ = (
        Index("memory_outbox_by_entry", "entry"),
        Index("memory_outbox_due", "due_at", "number"),
        {"sqlite_autoincrement": True},
    )
    number: int = number_column()
    tenant_id: str = long_text()
    entry: int = big()
    namespace_id: int = big()
    due_at: int = big()
    attempt: int = 0
    error: str | None = None


class SpaceRow(Row, table=True):
    """A vector space: one embedder, dimension and tokenizer. One serves; another may be built beside it."""

    __tablename__ = "memory_space"
    __table_args__ = (UniqueConstraint("name"),)
    number: int = number_column()
    name: str = long_text()
    status: str
    built_to: int = big()
    created_at: int = big()


class RecallRow(Row, table=True):
    """A recall that was answered: who asked what, and which assertions it saw."""

    __tablename__ = "memory_recall"
    __table_args__ = (
        UniqueConstraint("recall_id"),
        Index("memory_recall_by_run", "tenant_id", "run_ref"),
        Index("memory_recall_by_time", "asked_at"),
        by_import("memory_recall"),
    )
    number: int = number_column()
    recall_id: str = long_text()
    tenant_id: str = long_text()
    namespace: str = long_text()
    thread_ref: str | None = None
    run_ref: str | None = None
    asked_at: int = big()
    question: str = long_text()
    answers: str = long_text()
    withheld: str = long_text()
    recipe: str
    import_number: int | None = import_number()


class TombstoneRow(Row, table=True):
    """That an id was erased: no content, only that it must not come back."""

    __tablename__ = "memory_tombstone"
    __table_args__ = (UniqueConstraint("assertion_id"), Index("memory_tombstone_by_erasure", "erasure_id"))
    number: int = number_column()
    tenant_id: str = long_text()
    assertion_id: str = long_text()
    erasure_id: str = long_text()
    erased_at: int = big()


class ErasureRow(Row, table=True):
    """A job that erases. Its selector is forgotten when it is done; the counts stay."""

    __tablename__ = "memory_erasure"
    __table_args__ = (UniqueConstraint("erasure_id"),)
    number: int = number_column()
    erasure_id: str = long_text()
    tenant_id: str = long_text()
    selector: str | None = Field(default=None, sa_column=Column(Text))
    status: str
    counts: str = long_text()
    created_at: int = big()
    done_at: int | None = Field(default=None, sa_column=Column(BIG))


class ReceiptRow(Row, table=True):
    """What a change answered to its idempotency key, written in the transaction of the change.

    `words_of` is the assertion whose words the answer repeats: it goes when they do. Other answers are ids and counts.
    """

    __tablename__ = "memory_receipt"
    __table_args__ = (
        # The database's own word on "one change for one key".
        UniqueConstraint("tenant_id", "key_digest"),
        Index("memory_receipt_by_expiry", "expires_at"),
        partial("memory_receipt_by_words", "words_of", where=text("words_of IS NOT NULL")),
    )
    number: int = number_column()
    tenant_id: str = long_text()
    key_digest: str
    request_digest: str
    answer: str = long_text()
    words_of: str | None = None
    created_at: int = big()
    expires_at: int = big()


class Keeps(StrEnum):
    """What a table keeps of a person: what erasure removes is what export gives."""

    CONTENT = "content"  #: exported and erased
    DERIVED = "derived"  #: erased; made from content, so not exported
    NOTHING = "nothing"  #: no word of anybody's


erasure = table(ErasureRow)
outbox = table(OutboxRow)
recall_log = table(RecallRow)
receipt = table(ReceiptRow)
space = table(SpaceRow)
tombstone = table(TombstoneRow)

INVENTORY: dict[str, Keeps] = {
    "memory_assertion": Keeps.CONTENT,
    "memory_evidence": Keeps.CONTENT,
    "memory_succession": Keeps.CONTENT,
    "memory_recall": Keeps.CONTENT,
    "memory_attribute": Keeps.NOTHING,
    "memory_attribute_lock": Keeps.DERIVED,
    "memory_namespace": Keeps.DERIVED,
    "memory_namespace_prefix": Keeps.DERIVED,
    "memory_quarantine": Keeps.CONTENT,
    "memory_outbox": Keeps.DERIVED,
    "memory_space": Keeps.NOTHING,
    "memory_tombstone": Keeps.NOTHING,
    "memory_erasure": Keeps.NOTHING,
    "memory_receipt": Keeps.DERIVED,
    ImportRow.__tablename__: Keeps.NOTHING,
    StagedLineRow.__tablename__: Keeps.DERIVED,
}
