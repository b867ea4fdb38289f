"""The rows of compaction, in the state database. Private to the package.

Instants are epoch microseconds, documents are JSON in bytes (so every code point survives on both databases), and
`thread` is the number that state gives a thread: numbers are never used twice, and what belongs to a deleted thread is
removed with it (`store.thread_rows`).
"""

from typing import cast

from sqlalchemy import Column, Index, Table, Text, UniqueConstraint, text
from sqlmodel import Field, SQLModel

from threadmark.compaction.columns import BIG, METADATA, Row, big, count, document, long_text, thread_key

__all__ = [
    "METADATA",
    "analysis",
    "compaction",
    "current_view",
    "erasure",
    "ledger_row",
    "outlook",
    "policy",
    "promotion",
    "purse",
    "recall",
    "reply",
    "segment",
    "view",
]


class CurrentViewRow(Row, table=True):
    """Which view a thread has, and the root of its last ledger. Moved by compare-and-set of `version` alone."""

    __tablename__ = "compaction_standing"
    thread: int = thread_key()
    view_id: str
    version: int = big()
    ledger_root: str


class ViewRow(Row, table=True):
    """A version of a thread's view; never changed, but for an erasure."""

    __tablename__ = "compaction_view"
    __table_args__ = (Index("compaction_view_of_thread", "thread", "version"),)
    view_id: str = Field(primary_key=True)
    thread: int = big()
    version: int = big()
    parent_id: str | None = None
    compaction_id: str | None = None
    cause: str
    requested_by: str
    head_seq: int = big()
    ledgers: bytes = document()  #: ids of the compactions that are in effect in it, oldest first
    items: bytes = document()
    created_at: int = big()


class SegmentRow(Row, table=True):
    """A summary. `signature` says which entries it covers and in which version of each."""

    __tablename__ = "compaction_segment"
    __table_args__ = (Index("compaction_segment_of_thread", "thread"),)
    segment_id: str = Field(primary_key=True)
    thread: int = big()
    compaction_id: str
    signature: str
    body: bytes = document()


class CompactionRow(Row, table=True):
    """One compaction from its order to its end. `held_until` is the time-out of the process that performs it."""

    __tablename__ = "compaction"
    __table_args__ = (
        UniqueConstraint("tenant_id", "key"),
        Index("compaction_of_thread", "thread", "created_at"),
        Index(
            "compaction_open",
            "held_until",
            sqlite_where=text("status IN ('planned', 'summarising')"),
            postgresql_where=text("status IN ('planned', 'summarising')"),
        ),
        Index(
            "compaction_with_words",
            "committed_at",
            sqlite_where=text("words_gone_at IS NULL"),
            postgresql_where=text("words_gone_at IS NULL"),
        ),
        Index(
            "compaction_with_rows_ahead",
            "thread",
            sqlite_where=text("rows_ahead > 0"),
            postgresql_where=text("rows_ahead > 0"),
        ),
    )
    compaction_id: str = Field(primary_key=True)
    tenant_id: str
    thread: int = big()
    key: str  #: idempotency key
    request_digest: str
    status: str
    trigger: str
    requested_by: str
    summariser: str
    policy: bytes = document()
    base_tokens: int = big()
    purse_id: str | None = None
    cost: int | None = big(None)  #: picos, with what is set aside for a call; NULL: its model has no price
    plan: bytes | None = document(nullable=True)
    signature: str = ""
    branch: int = 0
    head_seq: int = big()
    from_seq: int = big()
    to_seq: int = big()
    tokens_before: int = big()
    tokens_after: int = big()
    floor_tokens: int = big()
    prompt_tokens: int = big()
    output_tokens: int = big()
    shown_ratio: float = 0.0
    strategy: str | None = None
    totals: bytes | None = document(nullable=True)
    rejections: bytes | None = document(nullable=True)
    critical_dropped: int = big()
    introduced: int = big()
    ordinal: int = big()  #: place in the thread's chain of ledgers, from 1; 0 before the commit
    prev_ledger_root: str = ""
    ledger_root: str = ""
    extractor_version: int = 0
    prompt_version: int = 0
    view_id: str | None = None
    error_code: str | None = None
    error: str | None = Field(default=None, sa_column=Column(Text))
    attempts: int = 0
    holder: str | None = None
    worker_id: str | None = None  #: in whose name it is held; with its lease the hold ends
    held_until: int = big()
    created_at: int = big()
    updated_at: int = big()
    committed_at: int | None = big(None)
    words_gone_at: int | None = big(None)  #: when the words of its ledger became digests
    rows_ahead: int = count()  #: rows of its ledger that are written before its commit, and that no reader sees


class LedgerRow(Row, table=True):
    """One line of a ledger. `folded` is its text in lower case, for searching; an erasure empties all texts.

    `surface` is how `folded` begins, short enough for an index on every database; None in rows of older versions.
    """

    __tablename__ = "compaction_row"
    __table_args__ = (
        UniqueConstraint("compaction_id", "row_id"),
        Index("compaction_row_of_thread", "thread", "status"),
        Index("compaction_row_by_unit", "tenant_id", "row_id"),
        Index("compaction_row_by_status", "tenant_id", "status"),
        Index("compaction_row_by_surface", "tenant_id", "surface"),
    )
    compaction_id: str = Field(primary_key=True)
    number: int = Field(primary_key=True)
    row_id: str
    tenant_id: str
    thread: int = big()
    unit: str
    cls: str
    status: str
    reason: str | None = None
    role: str | None = None
    critical: bool = False
    first_seq: int = big()
    last_seq: int = big()
    folded: str = long_text()
    surface: str | None = None
    body: bytes = document()


class PromotionRow(Row, table=True):
    """The outbox to memory: written with the compaction that drops the statement, delivered later."""

    __tablename__ = "compaction_promotion"
    __table_args__ = (
        Index("compaction_promotion_of_thread", "thread"),
        Index("compaction_promotion_due", "status", "due_at"),
    )
    promotion_id: str = Field(primary_key=True)
    compaction_id: str
    tenant_id: str
    thread: int = big()
    status: str
    body: bytes = document()
    attempts: int = 0
    due_at: int = big()
    memory_id: str | None = None
    error: str | None = Field(default=None, sa_column=Column(Text))
    created_at: int = big()


class AnalysisRow(Row, table=True):
    """What was found in a message, by extractor version and content; a thread keeps its own, so that it can go."""

    __tablename__ = "compaction_analysis"
    thread: int = thread_key()
    key: str = Field(primary_key=True)
    found: bytes = document()


class ReplyRow(Row, table=True):
    """A model's reply about one chunk, kept until the compaction ends: a second attempt pays for no chunk twice."""

    __tablename__ = "compaction_reply"
    __table_args__ = (Index("compaction_reply_of_thread", "thread"),)
    compaction_id: str = Field(primary_key=True)
    key: str = Field(primary_key=True)
    thread: int = big()
    reply: bytes = document()


class ErasureRow(Row, table=True):
    """A message that was erased: its place and who spoke, and nothing that was said."""

    __tablename__ = "compaction_erasure"
    thread: int = thread_key()
    seq: int = Field(sa_column=Column(BIG, primary_key=True, autoincrement=False))
    message: int = Field(primary_key=True)
    role: str


class PolicyRow(Row, table=True):
    """One version of a tenant's named policy; never changed. Without a `policy` the name was given up with it."""

    __tablename__ = "compaction_policy"
    tenant_id: str = Field(primary_key=True)
    name: str = Field(primary_key=True)
    version: int = Field(primary_key=True)
    policy: bytes | None = document(nullable=True)
    requested_by: str
    created_at: int = big()


class PurseRow(Row, table=True):
    """Money that the compactions of a job share, in picos; without a `total` it only counts."""

    __tablename__ = "compaction_purse"
    purse_id: str = Field(primary_key=True)
    tenant_id: str
    total: int | None = big(None)
    spent: int = big()


class RecallRow(Row, table=True):
    """A dropped unit that was requested again: which, when, how and by whom, and none of its words."""

    __tablename__ = "compaction_recall"
    __table_args__ = (Index("compaction_recall_of_thread", "thread", "at"),)
    key: str = Field(primary_key=True)  #: the same recall is noted once, however often it is repeated
    thread: int = big()
    compaction_id: str
    row_id: str
    how: str
    requested_by: str
    at: int = big()


class OutlookRow(Row, table=True):
    """What a dry run of a job found of a thread: figures, and no words."""

    __tablename__ = "compaction_outlook"
    __table_args__ = (Index("compaction_outlook_of_thread", "thread"),)
    job_id: str = Field(primary_key=True)
    thread_id: str = Field(primary_key=True)
    thread: int = big()
    body: bytes = document()


def _table(model: type[SQLModel]) -> Table:
    return cast(Table, getattr(model, "__table__"))  # noqa: B009


current_view = _table(CurrentViewRow)
view = _table(ViewRow)
segment = _table(SegmentRow)
compaction = _table(CompactionRow)
ledger_row = _table(LedgerRow)
promotion = _table(PromotionRow)
analysis = _table(AnalysisRow)
reply = _table(ReplyRow)
erasure = _table(ErasureRow)
policy = _table(PolicyRow)
purse = _table(PurseRow)
recall = _table(RecallRow)
outlook = _table(OutlookRow)
