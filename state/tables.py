"""The tables of state. Private to the package: other packages use domain values.

Instants are epoch microseconds, so no naive datetime can slip in. JSON documents are text, so every code point survives
on both databases. Numbers are surrogate keys that keep the journal's index small. Classes with `table=True` do not
validate; they only declare tables.
"""

from typing import Any, cast

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, MetaData, Table, Text, UniqueConstraint, text
from sqlmodel import Field, SQLModel

__all__ = ["METADATA", "branch", "entry", "receipt", "run", "task", "thread", "thread_label", "wait", "worker"]

METADATA = MetaData()
_BIG = BigInteger().with_variant(Integer, "sqlite")


def _partial(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    return Index(name, *columns, unique=unique, sqlite_where=text(where), postgresql_where=text(where))


def _number() -> Any:
    return Field(default=None, sa_column=Column(_BIG, primary_key=True, autoincrement=True))


def _big(default: int = 0) -> Any:
    return Field(default=default, sa_column=Column(_BIG, nullable=False, default=default))


def _count() -> Any:
    # With a server default: workers of the previous version insert rows without this column.
    return Field(default=0, sa_column=Column(_BIG, nullable=False, default=0, server_default=text("0")))


class Row(SQLModel):
    """Base of all rows of state."""

    metadata = METADATA


class ThreadRow(Row, table=True):
    """A thread: its head, its fence, and its owner, who may write to it."""

    __tablename__ = "thread"
    __table_args__ = (
        UniqueConstraint("tenant_id", "thread_id"),
        Index("thread_by_update", "tenant_id", "updated_at", "number"),
        _partial("thread_by_owner", "owner", where="owner IS NOT NULL"),
        _partial("thread_expiring", "expires_at", where="expires_at IS NOT NULL"),
        # Without AUTOINCREMENT SQLite reuses the number of a deleted thread, with fence 0. A holder that had been
        # suspended meanwhile would then write into the new thread.
        {"sqlite_autoincrement": True},
    )
    number: int = _number()
    tenant_id: str
    thread_id: str
    status: str
    labels: str = Field(sa_column=Column("metadata", Text, nullable=False))
    error: str | None = None
    created_at: int = _big()
    updated_at: int = _big()
    state_updated_at: int = _big()
    expires_at: int | None = Field(default=None, sa_column=Column(_BIG))
    fence: int = _big()
    owner: str | None = None
    head_seq: int = _big()
    head_digest: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    branch: int = 0
    branch_count: int = 1
    lineage: str
    inbox: int = _big()
    erasures: int = _count()  #: erasures in the journal; folds from before the last one are outdated


class ThreadLabelRow(Row, table=True):
    """One top-level key of a thread's metadata, for filters; key and value are canonical JSON, so SQL needs no JSON
    path.
    """

    __tablename__ = "thread_label"
    __table_args__ = (Index("thread_label_lookup", "key", "value", "thread"),)
    thread: int = Field(sa_column=Column(_BIG, primary_key=True))
    key: str = Field(primary_key=True)
    value: str


class BranchRow(Row, table=True):
    """A branch of the journal that left its parent after `fork_seq`."""

    __tablename__ = "branch"
    thread: int = Field(sa_column=Column(_BIG, primary_key=True))
    branch: int = Field(primary_key=True)
    parent: int
    fork_seq: int = _big()


class EntryRow(Row, table=True):
    """One entry of a journal. `erased` holds the salted digest of an erased payload, parts of which may remain."""

    __tablename__ = "entry"
    __table_args__ = (UniqueConstraint("thread", "seq"),)
    number: int = _number()
    thread: int = _big()
    seq: int = _big()
    branch: int
    run: int | None = Field(default=None, sa_column=Column(_BIG))
    fence: int = _big()
    at: int = _big()
    kind: str
    salt: bytes | None = Field(default=None, sa_column=Column(LargeBinary))
    payload: bytes | None = Field(default=None, sa_column=Column(LargeBinary))
    erased: bytes | None = Field(default=None, sa_column=Column(LargeBinary))
    digest: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


class RunRow(Row, table=True):
    """A run, and the inbox row of its request until a worker folds it in. `number` is the order of acceptance."""

    __tablename__ = "run"
    __table_args__ = (
        UniqueConstraint("run_id"),
        Index("run_of_thread", "thread", "number"),
        _partial("run_due", "stamp", "number", where="status = 'pending'"),
        _partial("run_of_tenant", "tenant_id", "stamp", where="status = 'pending'"),
        _partial("run_running", "thread", where="status = 'running'", unique=True),
        _partial("run_scheduled", "tenant_id", "due_at", where="status = 'pending' AND attempts = 0 AND due_at > 0"),
        {"sqlite_autoincrement": True},
    )
    number: int = _number()
    run_id: str
    tenant_id: str
    thread: int = _big()
    execution_id: str
    assistant: str
    route: str  #: which workers can run it: the assistant, or assistant@version if the version is pinned
    status: str
    multitask: str
    request: str  #: JSON of what the caller requested: input, command, config, stream modes, pauses
    labels: str = Field(sa_column=Column("metadata", Text, nullable=False))
    resumable: bool = False
    created_at: int = _big()
    updated_at: int = _big()
    due_at: int = _big()
    stamp: int = _big()  #: place in the queue that is fair among tenants
    parked: str | None = None
    attempts: int = 0
    orphaned: int = 0  #: deaths of its workers since its last progress
    orphan_seq: int = _big()  #: the thread's head when it was last found orphaned
    cancel: str | None = None
    reason: str | None = None
    error: str | None = None
    hidden: bool = False  #: rolled back or deleted: invisible to readers


class WaitRow(Row, table=True):
    """A question to a person. A conditional update moves `open` to `answered` or `superseded`, once."""

    __tablename__ = "wait"
    __table_args__ = (
        Index("wait_of_thread", "thread", "status"),
        _partial("wait_open", "tenant_id", where="status = 'open'"),
    )
    wait_id: str = Field(primary_key=True)
    tenant_id: str
    thread: int = _big()
    run: int = _big()
    execution_id: str
    step_key: str
    kind: str
    tool: str
    arguments: str
    shown_digest: str
    status: str
    opened_at: int = _big()
    answer: str | None = None
    answered_by: str | None = None
    answered_at: int | None = Field(default=None, sa_column=Column(_BIG))
    effect: str | None = None  #: the tool's effect when the question was asked; None: asked by an older version
    folded: bool = False  #: the journal has the answer, or the end of the question


class ReceiptRow(Row, table=True):
    """The stored reply of an idempotency key; committed together with what the request created."""

    __tablename__ = "receipt"
    __table_args__ = (
        Index("receipt_by_age", "created_at"),
        _partial("receipt_of_thread", "thread", where="thread IS NOT NULL"),
        # Of workers of the previous version, which do not write `thread`.
        _partial("receipt_of_run", "run_id", where="thread IS NULL AND run_id IS NOT NULL"),
    )
    tenant_id: str = Field(primary_key=True)
    key: str = Field(primary_key=True)
    request_digest: str
    run_id: str | None = None
    status_code: int | None = None
    reply: bytes | None = Field(default=None, sa_column=Column(LargeBinary))
    created_at: int = _big()
    #: What the reply is about, if that is one thread; with the thread the receipt goes.
    thread: int | None = Field(default=None, sa_column=Column(_BIG))


class TaskRow(Row, table=True):
    """A background task. Its key is unique, so adding it twice creates one task."""

    __tablename__ = "task"
    __table_args__ = (
        UniqueConstraint("task_id"),
        UniqueConstraint("tenant_id", "kind", "key"),
        Index("task_of_tenant", "tenant_id", "number"),
        _partial("task_due", "due_at", "number", where="status = 'pending'"),
        _partial("task_running", "owner", where="status = 'running'"),
        _partial("task_undone", "tenant_id", "kind", where="status IN ('pending', 'running')"),
        _partial("task_over", "updated_at", where="status IN ('done', 'cancelled')"),
        {"sqlite_autoincrement": True},
    )
    number: int = _number()
    task_id: str
    tenant_id: str
    kind: str
    key: str
    payload: str
    status: str
    owner: str | None = None
    fence: int = _big()
    attempts: int = 0
    failures: int = 0  #: failed attempts, without those cut short by a stop or a death
    deaths: int = 0  #: workers that died at it since its last progress
    due_at: int = _big()
    progress: str | None = None
    result: str | None = None
    error: str | None = None
    created_at: int = _big()
    updated_at: int = _big()


class WorkerRow(Row, table=True):
    """A worker process and until when its lease holds (database time)."""

    __tablename__ = "worker"
    worker_id: str = Field(primary_key=True)
    lease_until: int = _big()
    started_at: int = _big()
    agents: str = "{}"
    claim_count: int = _count()  #: since its start
    orphan_count: int = _count()  #: claims that took over work of dead workers
    recent_claim_count: int = _count()  #: in the last RATE_WINDOW_S seconds
    loop_lag_us: int = _count()  #: how long its event loop delayed a call, at the last heartbeat
    beat_at: int = _count()  #: the last heartbeat (database time)
    loops: str = Field(default="[]", sa_column=Column(Text, nullable=False, server_default=text("'[]'")))  #: JSON


def _table(model: type[SQLModel]) -> Table:
    return cast(Table, getattr(model, "__table__"))  # noqa: B009


thread = _table(ThreadRow)
thread_label = _table(ThreadLabelRow)
branch = _table(BranchRow)
entry = _table(EntryRow)
run = _table(RunRow)
wait = _table(WaitRow)
receipt = _table(ReceiptRow)
task = _table(TaskRow)
worker = _table(WorkerRow)
