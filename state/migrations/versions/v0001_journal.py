"""Threads, runs, entries, waits, receipts, workers."""

import sqlalchemy as sa
from alembic import op

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "branch",
        sa.Column("thread", BIG, nullable=False),
        sa.Column("branch", sa.Integer(), nullable=False),
        sa.Column("parent", sa.Integer(), nullable=False),
        sa.Column("fork_seq", BIG, nullable=False),
        sa.PrimaryKeyConstraint("thread", "branch"),
    )
    op.create_table(
        "entry",
        sa.Column("number", BIG, autoincrement=True, nullable=False),
        sa.Column("thread", BIG, nullable=False),
        sa.Column("seq", BIG, nullable=False),
        sa.Column("branch", sa.Integer(), nullable=False),
        sa.Column("run", BIG, nullable=True),
        sa.Column("fence", BIG, nullable=False),
        sa.Column("at", BIG, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("salt", sa.LargeBinary(), nullable=True),
        sa.Column("payload", sa.LargeBinary(), nullable=True),
        sa.Column("erased", sa.LargeBinary(), nullable=True),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("thread", "seq"),
    )
    op.create_table(
        "receipt",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("request_digest", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=True),
        sa.Column("status_code", sa.Integer(), nullable=True),
        sa.Column("reply", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", BIG, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "key"),
    )
    op.create_index("receipt_by_age", "receipt", ["created_at"], unique=False)
    op.create_table(
        "run",
        sa.Column("number", BIG, autoincrement=True, nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("thread", BIG, nullable=False),
        sa.Column("execution_id", sa.String(), nullable=False),
        sa.Column("assistant", sa.String(), nullable=False),
        sa.Column("route", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("multitask", sa.String(), nullable=False),
        sa.Column("request", sa.String(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("resumable", sa.Boolean(), nullable=False),
        sa.Column("created_at", BIG, nullable=False),
        sa.Column("updated_at", BIG, nullable=False),
        sa.Column("due_at", BIG, nullable=False),
        sa.Column("stamp", BIG, nullable=False),
        sa.Column("parked", sa.String(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("orphaned", sa.Integer(), nullable=False),
        sa.Column("orphan_seq", BIG, nullable=False),
        sa.Column("cancel", sa.String(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("hidden", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("run_id"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "run_due",
        "run",
        ["stamp", "number"],
        unique=False,
        sqlite_where=sa.text("status = 'pending'"),
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.create_index(
        "run_of_tenant",
        "run",
        ["tenant_id", "stamp"],
        unique=False,
        sqlite_where=sa.text("status = 'pending'"),
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.create_index("run_of_thread", "run", ["thread", "number"], unique=False)
    op.create_index(
        "run_running",
        "run",
        ["thread"],
        unique=True,
        sqlite_where=sa.text("status = 'running'"),
        postgresql_where=sa.text("status = 'running'"),
    )
    op.create_table(
        "thread",
        sa.Column("number", BIG, autoincrement=True, nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("thread_id", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("created_at", BIG, nullable=False),
        sa.Column("updated_at", BIG, nullable=False),
        sa.Column("state_updated_at", BIG, nullable=False),
        sa.Column("expires_at", BIG, nullable=True),
        sa.Column("fence", BIG, nullable=False),
        sa.Column("owner", sa.String(), nullable=True),
        sa.Column("head_seq", BIG, nullable=False),
        sa.Column("head_digest", sa.LargeBinary(), nullable=False),
        sa.Column("branch", sa.Integer(), nullable=False),
        sa.Column("branch_count", sa.Integer(), nullable=False),
        sa.Column("lineage", sa.String(), nullable=False),
        sa.Column("inbox", BIG, nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("tenant_id", "thread_id"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "thread_by_owner",
        "thread",
        ["owner"],
        unique=False,
        sqlite_where=sa.text("owner IS NOT NULL"),
        postgresql_where=sa.text("owner IS NOT NULL"),
    )
    op.create_index("thread_by_update", "thread", ["tenant_id", "updated_at", "number"], unique=False)
    op.create_index(
        "thread_expiring",
        "thread",
        ["expires_at"],
        unique=False,
        sqlite_where=sa.text("expires_at IS NOT NULL"),
        postgresql_where=sa.text("expires_at IS NOT NULL"),
    )
    op.create_table(
        "thread_label",
        sa.Column("thread", BIG, nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("thread", "key"),
    )
    op.create_index("thread_label_lookup", "thread_label", ["key", "value", "thread"], unique=False)
    op.create_table(
        "wait",
        sa.Column("wait_id", sa.String(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("thread", BIG, nullable=False),
        sa.Column("run", BIG, nullable=False),
        sa.Column("execution_id", sa.String(), nullable=False),
        sa.Column("step_key", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("tool", sa.String(), nullable=False),
        sa.Column("arguments", sa.String(), nullable=False),
        sa.Column("shown_digest", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("opened_at", BIG, nullable=False),
        sa.Column("answer", sa.String(), nullable=True),
        sa.Column("answered_by", sa.String(), nullable=True),
        sa.Column("answered_at", BIG, nullable=True),
        sa.Column("folded", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("wait_id"),
    )
    op.create_index("wait_of_thread", "wait", ["thread", "status"], unique=False)
    op.create_table(
        "worker",
        sa.Column("worker_id", sa.String(), nullable=False),
        sa.Column("lease_until", BIG, nullable=False),
        sa.Column("started_at", BIG, nullable=False),
        sa.Column("agents", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("worker_id"),
    )


def downgrade() -> None:
    op.drop_table("worker")
    op.drop_index("wait_of_thread", table_name="wait")
    op.drop_table("wait")
    op.drop_index("thread_label_lookup", table_name="thread_label")
    op.drop_table("thread_label")
    op.drop_index(
        "thread_expiring",
        table_name="thread",
        sqlite_where=sa.text("expires_at IS NOT NULL"),
        postgresql_where=sa.text("expires_at IS NOT NULL"),
    )
    op.drop_index("thread_by_update", table_name="thread")
    op.drop_index(
        "thread_by_owner",
        table_name="thread",
        sqlite_where=sa.text("owner IS NOT NULL"),
        postgresql_where=sa.text("owner IS NOT NULL"),
    )
    op.drop_table("thread")
    op.drop_index(
        "run_running",
        table_name="run",
        sqlite_where=sa.text("status = 'running'"),
        postgresql_where=sa.text("status = 'running'"),
    )
    op.drop_index("run_of_thread", table_name="run")
    op.drop_index(
        "run_of_tenant",
        table_name="run",
        sqlite_where=sa.text("status = 'pending'"),
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.drop_index(
        "run_due",
        table_name="run",
        sqlite_where=sa.text("status = 'pending'"),
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.drop_table("run")
    op.drop_index("receipt_by_age", table_name="receipt")
    op.drop_table("receipt")
    op.drop_table("entry")
    op.drop_table("branch")
