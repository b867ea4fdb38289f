"""Namespaces, assertions, evidence, outbox, spaces, recalls, erasures."""

import sqlalchemy as sa
from alembic import op

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
OPEN = "valid_to = 4611686018427387904 AND known_to = 4611686018427387904 AND hold = ''"
ONE_CURRENT = OPEN + " AND cardinality = 'one'"
HELD_ONCE = OPEN + " AND (cardinality IS NULL OR cardinality <> 'one')"

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "memory_assertion",
        sa.Column("number", BIG, autoincrement=True, nullable=False),
        sa.Column("assertion_id", sa.Text(), nullable=False),
        sa.Column("root_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("namespace_id", BIG, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.String(), nullable=True),
        sa.Column("attribute", sa.String(), nullable=True),
        sa.Column("subject_key", sa.String(), nullable=True),
        sa.Column("attribute_key", sa.String(), nullable=True),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("cardinality", sa.String(), nullable=True),
        sa.Column("valid_from", BIG, nullable=False),
        sa.Column("valid_to", BIG, nullable=False),
        sa.Column("known_from", BIG, nullable=False),
        sa.Column("known_to", BIG, nullable=False),
        sa.Column("observed_at", BIG, nullable=False),
        sa.Column("expires_at", BIG, nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("trust", sa.String(), nullable=False),
        sa.Column("asserted_by", sa.Text(), nullable=False),
        sa.Column("extractor", sa.String(), nullable=True),
        sa.Column("hold", sa.String(), nullable=False),
        sa.Column("closing", sa.String(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("speaker", sa.String(), nullable=True),
        sa.Column("thread_ref", sa.String(), nullable=True),
        sa.Column("run_ref", sa.String(), nullable=True),
        sa.Column("session", sa.String(), nullable=True),
        sa.Column("previous_id", sa.String(), nullable=True),
        sa.Column("says_when", sa.Boolean(), nullable=False),
        sa.Column("terms", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("assertion_id"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "memory_assertion_by_attribute",
        "memory_assertion",
        ["namespace_id", "subject_key", "attribute_key", "known_to"],
        unique=False,
    )
    op.create_index("memory_assertion_by_namespace", "memory_assertion", ["namespace_id", "number"], unique=False)
    op.create_index(
        "memory_assertion_by_previous",
        "memory_assertion",
        ["previous_id"],
        unique=False,
        sqlite_where=sa.text("previous_id IS NOT NULL"),
        postgresql_where=sa.text("previous_id IS NOT NULL"),
    )
    op.create_index("memory_assertion_by_root", "memory_assertion", ["root_id"], unique=False)
    op.create_index(
        "memory_assertion_by_thread",
        "memory_assertion",
        ["namespace_id", "thread_ref", "number"],
        unique=False,
        sqlite_where=sa.text("thread_ref IS NOT NULL"),
        postgresql_where=sa.text("thread_ref IS NOT NULL"),
    )
    op.create_index(
        "memory_assertion_expiring",
        "memory_assertion",
        ["expires_at"],
        unique=False,
        sqlite_where=sa.text("expires_at < 4611686018427387904"),
        postgresql_where=sa.text("expires_at < 4611686018427387904"),
    )
    op.create_index(
        "memory_assertion_held_once",
        "memory_assertion",
        ["namespace_id", "digest"],
        unique=True,
        sqlite_where=sa.text(HELD_ONCE),
        postgresql_where=sa.text(HELD_ONCE),
    )
    op.create_index(
        "memory_assertion_one_current",
        "memory_assertion",
        ["namespace_id", "subject_key", "attribute_key"],
        unique=True,
        sqlite_where=sa.text(ONE_CURRENT),
        postgresql_where=sa.text(ONE_CURRENT),
    )
    op.create_table(
        "memory_attribute",
        sa.Column("number", BIG, autoincrement=True, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("attribute_key", sa.Text(), nullable=False),
        sa.Column("cardinality", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("tenant_id", "attribute_key"),
    )
    op.create_table(
        "memory_attribute_lock",
        sa.Column("number", BIG, autoincrement=True, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("namespace_id", BIG, nullable=False),
        sa.Column("subject_key", sa.Text(), nullable=False),
        sa.Column("attribute_key", sa.Text(), nullable=False),
        sa.Column("change_count", BIG, nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("namespace_id", "subject_key", "attribute_key"),
    )
    op.create_table(
        "memory_erasure",
        sa.Column("number", BIG, autoincrement=True, nullable=False),
        sa.Column("erasure_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("selector", sa.Text(), nullable=True),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("counts", sa.Text(), nullable=False),
        sa.Column("created_at", BIG, nullable=False),
        sa.Column("done_at", BIG, nullable=True),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("erasure_id"),
    )
    op.create_table(
        "memory_evidence",
        sa.Column("number", BIG, autoincrement=True, nullable=False),
        sa.Column("evidence_id", sa.Text(), nullable=False),
        sa.Column("root_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("namespace_id", BIG, nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("origin_key", sa.String(), nullable=True),
        sa.Column("once", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("trust", sa.String(), nullable=False),
        sa.Column("observed_at", BIG, nullable=False),
        sa.Column("recorded_at", BIG, nullable=False),
        sa.Column("asserted_by", sa.Text(), nullable=False),
        sa.Column("extractor", sa.String(), nullable=True),
        sa.Column("thread_ref", sa.String(), nullable=True),
        sa.Column("run_ref", sa.String(), nullable=True),
        sa.Column("seq", BIG, nullable=True),
        sa.Column("message_ref", sa.String(), nullable=True),
        sa.Column("actor", sa.String(), nullable=True),
        sa.Column("origin_at", BIG, nullable=True),
        sa.Column("content_hash", sa.String(), nullable=True),
        sa.Column("char_from", BIG, nullable=True),
        sa.Column("char_to", BIG, nullable=True),
        sa.Column("quote", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("evidence_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("memory_evidence_by_actor", "memory_evidence", ["tenant_id", "actor"], unique=False)
    op.create_index("memory_evidence_by_message", "memory_evidence", ["tenant_id", "message_ref"], unique=False)
    op.create_index(
        "memory_evidence_by_origin", "memory_evidence", ["namespace_id", "origin_key", "digest"], unique=False
    )
    op.create_index("memory_evidence_by_root", "memory_evidence", ["root_id", "number"], unique=False)
    op.create_index("memory_evidence_by_run", "memory_evidence", ["tenant_id", "run_ref"], unique=False)
    op.create_index("memory_evidence_by_thread", "memory_evidence", ["tenant_id", "thread_ref"], unique=False)
    op.create_index(
        "memory_evidence_once",
        "memory_evidence",
        ["namespace_id", "origin_key", "digest", "role"],
        unique=True,
        sqlite_where=sa.text("once = 1"),
        postgresql_where=sa.text("once = 1"),
    )
    op.create_table(
        "memory_namespace",
        sa.Column("namespace_id", BIG, autoincrement=True, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("labels", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("namespace_id"),
        sa.UniqueConstraint("tenant_id", "labels"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "memory_namespace_prefix",
        sa.Column("number", BIG, autoincrement=True, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("namespace_id", BIG, nullable=False),
        sa.PrimaryKeyConstraint("number"),
    )
    op.create_index(
        "memory_namespace_by_prefix", "memory_namespace_prefix", ["tenant_id", "prefix", "namespace_id"], unique=True
    )
    op.create_table(
        "memory_outbox",
        sa.Column("number", BIG, autoincrement=True, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("entry", BIG, nullable=False),
        sa.Column("namespace_id", BIG, nullable=False),
        sa.Column("due_at", BIG, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("error", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("number"),
        sqlite_autoincrement=True,
    )
    op.create_index("memory_outbox_by_entry", "memory_outbox", ["entry"], unique=False)
    op.create_index("memory_outbox_due", "memory_outbox", ["due_at", "number"], unique=False)
    op.create_table(
        "memory_quarantine",
        sa.Column("number", BIG, autoincrement=True, nullable=False),
        sa.Column("quarantine_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("selector", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", BIG, nullable=False),
        sa.Column("released_at", BIG, nullable=False),
        sa.PrimaryKeyConstraint("number"),
    )
    op.create_index("memory_quarantine_by_tenant", "memory_quarantine", ["tenant_id", "released_at"], unique=False)
    op.create_table(
        "memory_recall",
        sa.Column("number", BIG, autoincrement=True, nullable=False),
        sa.Column("recall_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("thread_ref", sa.String(), nullable=True),
        sa.Column("run_ref", sa.String(), nullable=True),
        sa.Column("asked_at", BIG, nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("answers", sa.Text(), nullable=False),
        sa.Column("withheld", sa.Text(), nullable=False),
        sa.Column("recipe", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("recall_id"),
    )
    op.create_index("memory_recall_by_run", "memory_recall", ["tenant_id", "run_ref"], unique=False)
    op.create_index("memory_recall_by_time", "memory_recall", ["asked_at"], unique=False)
    op.create_table(
        "memory_space",
        sa.Column("number", BIG, autoincrement=True, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("built_to", BIG, nullable=False),
        sa.Column("created_at", BIG, nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "memory_succession",
        sa.Column("number", BIG, autoincrement=True, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("older_id", sa.Text(), nullable=False),
        sa.Column("newer_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("at", BIG, nullable=False),
        sa.PrimaryKeyConstraint("number"),
    )
    op.create_index("memory_succession_by_newer", "memory_succession", ["newer_id"], unique=False)
    op.create_index("memory_succession_by_older", "memory_succession", ["older_id"], unique=False)
    op.create_table(
        "memory_tombstone",
        sa.Column("number", BIG, autoincrement=True, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("assertion_id", sa.Text(), nullable=False),
        sa.Column("erasure_id", sa.Text(), nullable=False),
        sa.Column("erased_at", BIG, nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("assertion_id"),
    )
    op.create_index("memory_tombstone_by_erasure", "memory_tombstone", ["erasure_id"], unique=False)
    # ### end Alembic commands ###


def downgrade() -> None:
    op.drop_index("memory_tombstone_by_erasure", table_name="memory_tombstone")
    op.drop_table("memory_tombstone")
    op.drop_index("memory_succession_by_older", table_name="memory_succession")
    op.drop_index("memory_succession_by_newer", table_name="memory_succession")
    op.drop_table("memory_succession")
    op.drop_table("memory_space")
    op.drop_index("memory_recall_by_time", table_name="memory_recall")
    op.drop_index("memory_recall_by_run", table_name="memory_recall")
    op.drop_table("memory_recall")
    op.drop_index("memory_quarantine_by_tenant", table_name="memory_quarantine")
    op.drop_table("memory_quarantine")
    op.drop_index("memory_outbox_due", table_name="memory_outbox")
    op.drop_index("memory_outbox_by_entry", table_name="memory_outbox")
    op.drop_table("memory_outbox")
    op.drop_index("memory_namespace_by_prefix", table_name="memory_namespace_prefix")
    op.drop_table("memory_namespace_prefix")
    op.drop_table("memory_namespace")
    op.drop_index(
        "memory_evidence_once",
        table_name="memory_evidence",
        sqlite_where=sa.text("once = 1"),
        postgresql_where=sa.text("once = 1"),
    )
    op.drop_index("memory_evidence_by_thread", table_name="memory_evidence")
    op.drop_index("memory_evidence_by_run", table_name="memory_evidence")
    op.drop_index("memory_evidence_by_root", table_name="memory_evidence")
    op.drop_index("memory_evidence_by_origin", table_name="memory_evidence")
    op.drop_index("memory_evidence_by_message", table_name="memory_evidence")
    op.drop_index("memory_evidence_by_actor", table_name="memory_evidence")
    op.drop_table("memory_evidence")
    op.drop_table("memory_erasure")
    op.drop_table("memory_attribute_lock")
    op.drop_table("memory_attribute")
    op.drop_index(
        "memory_assertion_one_current",
        table_name="memory_assertion",
        sqlite_where=sa.text(ONE_CURRENT),
        postgresql_where=sa.text(ONE_CURRENT),
    )
    op.drop_index(
        "memory_assertion_held_once",
        table_name="memory_assertion",
        sqlite_where=sa.text(HELD_ONCE),
        postgresql_where=sa.text(HELD_ONCE),
    )
    op.drop_index(
        "memory_assertion_expiring",
        table_name="memory_assertion",
        sqlite_where=sa.text("expires_at < 4611686018427387904"),
        postgresql_where=sa.text("expires_at < 4611686018427387904"),
    )
    op.drop_index(
        "memory_assertion_by_thread",
        table_name="memory_assertion",
        sqlite_where=sa.text("thread_ref IS NOT NULL"),
        postgresql_where=sa.text("thread_ref IS NOT NULL"),
    )
    op.drop_index("memory_assertion_by_root", table_name="memory_assertion")
    op.drop_index(
        "memory_assertion_by_previous",
        table_name="memory_assertion",
        sqlite_where=sa.text("previous_id IS NOT NULL"),
        postgresql_where=sa.text("previous_id IS NOT NULL"),
    )
    op.drop_index("memory_assertion_by_namespace", table_name="memory_assertion")
    op.drop_index("memory_assertion_by_attribute", table_name="memory_assertion")
    op.drop_table("memory_assertion")
    # ### end Alembic commands ###
