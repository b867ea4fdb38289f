"""Rows of imports under way: who imports, and what waits beside the unpublished rows."""

from enum import StrEnum

from sqlalchemy import Index, text

from threadmark.memory.store.tables import Row, big, long_text, number_column, partial, table

__all__ = ["ImportStatus", "StagedKind", "import_job", "staged_line"]


class ImportStatus(StrEnum):
    """How far an import is. Its row is gone when everything is done."""

    OPEN = "open"  #: it stages lines; no reader sees them
    DISCARDED = "discarded"  #: it was refused or abandoned; no reader sees its rows, and they are being removed
    PUBLISHED = "published"  #: all readers see its rows; the index is being updated


class StagedKind(StrEnum):
    """What a line waits for, beside the rows that are staged in their own tables."""

    ATTRIBUTE = "attribute"  #: to be declared when the import is published
    QUARANTINE = "quarantine"  #: to be in force when the import is published
    CONTEST = "contest"  #: an assertion of the import (`key`) that another write contradicts
    ERASURE = "erasure"  #: an erasure (`key`) that was noted meanwhile; `row` is its selector


class ImportRow(Row, table=True):
    """An import. A tenant has at most one that is not published: what one has staged, another would take for held."""

    __tablename__ = "memory_import"
    __table_args__ = (
        partial("memory_import_one_open", "tenant_id", where=text("status <> 'published'"), unique=True),
        {"sqlite_autoincrement": True},
    )
    number: int = number_column()
    tenant_id: str = long_text()
    status: str
    queued_to: int = big()
    touched_at: int = big()


class StagedLineRow(Row, table=True):
    """A line that takes effect when the import is published, or that says what happened to it meanwhile."""

    __tablename__ = "memory_import_line"
    __table_args__ = (Index("memory_import_line_by_kind", "import_number", "kind", "key"),)
    number: int = number_column()
    import_number: int = big()
    kind: str
    key: str = long_text()
    line: int = big()
    row: str = long_text()


import_job = table(ImportRow)
staged_line = table(StagedLineRow)
