"""Views, segments, compactions and their ledgers."""

import sqlalchemy as sa
from alembic import op

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "compaction",
        sa.Column("compaction_id", sa.String(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("thread", BIG, nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("request_digest", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("trigger", sa.String(), nullable=False),
        sa.Column("requested_by", sa.String(), nullable=False),
        sa.Column("summariser", sa.String(), nullable=False),
        sa.Column("policy", sa.LargeBinary(), nullable=False),
        sa.Column("base_tokens", BIG, nullable=False),
        sa.Column("plan", sa.LargeBinary(), nullable=True),
        sa.Column("signature", sa.String(), nullable=False),
        sa.Column("branch", sa.Integer(), nullable=False),
        sa.Column("head_seq", BIG, nullable=False),
        sa.Column("from_seq", BIG, nullable=False),
        sa.Column("to_seq", BIG, nullable=False),
        sa.Column("tokens_before", BIG, nullable=False),
        sa.Column("tokens_after", BIG, nullable=False),
        sa.Column("floor_tokens", BIG, nullable=False),
        sa.Column("prompt_tokens", BIG, nullable=False),
        sa.Column("output_tokens", BIG, nullable=False),
        sa.Column("shown_ratio", sa.Float(), nullable=False),
        sa.Column("strategy", sa.String(), nullable=True),
        sa.Column("totals", sa.LargeBinary(), nullable=True),
        sa.Column("rejections", sa.LargeBinary(), nullable=True),
        sa.Column("critical_dropped", BIG, nullable=False),
        sa.Column("introduced", BIG, nullable=False),
        sa.Column("ordinal", BIG, nullable=False),
        sa.Column("prev_ledger_root", sa.String(), nullable=False),
        sa.Column("ledger_root", sa.String(), nullable=False),
        sa.Column("extractor_version", sa.Integer(), nullable=False),
        sa.Column("prompt_version", sa.Integer(), nullable=False),
        sa.Column("view_id", sa.String(), nullable=True),
        sa.Column("error_code", sa.String(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("holder", sa.String(), nullable=True),
        sa.Column("held_until", BIG, nullable=False),
        sa.Column("created_at", BIG, nullable=False),
        sa.Column("updated_at", BIG, nullable=False),
        sa.Column("committed_at", BIG, nullable=True),
        sa.PrimaryKeyConstraint("compaction_id"),
        sa.UniqueConstraint("tenant_id", "key"),
    )
    op.create_index("compaction_of_thread", "compaction", ["thread", "created_at"], unique=False)
    op.create_index(
        "compaction_open",
        "compaction",
        ["held_until"],
        unique=False,
        sqlite_where=sa.text("status IN ('planned', 'summarising')"),
        postgresql_where=sa.text("status IN ('planned', 'summarising')"),
    )
    op.create_table(
        "compaction_analysis",
        sa.Column("thread", BIG, autoincrement=False, nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("found", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("thread", "key"),
    )
    op.create_table(
        "compaction_erasure",
        sa.Column("thread", BIG, autoincrement=False, nullable=False),
        sa.Column("seq", BIG, autoincrement=False, nullable=False),
        sa.Column("message", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("thread", "seq", "message"),
    )
    op.create_table(
        "compaction_promotion",
        sa.Column("promotion_id", sa.String(), nullable=False),
        sa.Column("compaction_id", sa.String(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("thread", BIG, nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", BIG, nullable=False),
        sa.Column("memory_id", sa.String(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", BIG, nullable=False),
        sa.PrimaryKeyConstraint("promotion_id"),
    )
    op.create_index("compaction_promotion_due", "compaction_promotion", ["status", "due_at"], unique=False)
    op.create_index("compaction_promotion_of_thread", "compaction_promotion", ["thread"], unique=False)
    op.create_table(
        "compaction_reply",
        sa.Column("compaction_id", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("thread", BIG, nullable=False),
        sa.Column("reply", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("compaction_id", "key"),
    )
    op.create_index("compaction_reply_of_thread", "compaction_reply", ["thread"], unique=False)
    op.create_table(
        "compaction_row",
        sa.Column("compaction_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("row_id", sa.String(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("thread", BIG, nullable=False),
        sa.Column("unit", sa.String(), nullable=False),
        sa.Column("cls", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("role", sa.String(), nullable=True),
        sa.Column("critical", sa.Boolean(), nullable=False),
        sa.Column("first_seq", BIG, nullable=False),
        sa.Column("last_seq", BIG, nullable=False),
        sa.Column("folded", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("compaction_id", "number"),
        sa.UniqueConstraint("compaction_id", "row_id"),
    )
    op.create_index("compaction_row_by_status", "compaction_row", ["tenant_id", "status"], unique=False)
    op.create_index("compaction_row_by_unit", "compaction_row", ["tenant_id", "row_id"], unique=False)
    op.create_index("compaction_row_of_thread", "compaction_row", ["thread", "status"], unique=False)
    op.create_table(
        "compaction_segment",
        sa.Column("segment_id", sa.String(), nullable=False),
        sa.Column("thread", BIG, nullable=False),
        sa.Column("compaction_id", sa.String(), nullable=False),
        sa.Column("signature", sa.String(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("segment_id"),
    )
    op.create_index("compaction_segment_of_thread", "compaction_segment", ["thread"], unique=False)
    op.create_table(
        "compaction_standing",
        sa.Column("thread", BIG, autoincrement=False, nullable=False),
        sa.Column("view_id", sa.String(), nullable=False),
        sa.Column("version", BIG, nullable=False),
        sa.Column("ledger_root", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("thread"),
    )
    op.create_table(
        "compaction_view",
        sa.Column("view_id", sa.String(), nullable=False),
        sa.Column("thread", BIG, nullable=False),
        sa.Column("version", BIG, nullable=False),
        sa.Column("parent_id", sa.String(), nullable=True),
        sa.Column("compaction_id", sa.String(), nullable=True),
        sa.Column("cause", sa.String(), nullable=False),
        sa.Column("requested_by", sa.String(), nullable=False),
        sa.Column("head_seq", BIG, nullable=False),
        sa.Column("ledgers", sa.LargeBinary(), nullable=False),
        sa.Column("items", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", BIG, nullable=False),
        sa.PrimaryKeyConstraint("view_id"),
    )
    op.create_index("compaction_view_of_thread", "compaction_view", ["thread", "version"], unique=False)


def downgrade() -> None:
    op.drop_index("compaction_view_of_thread", table_name="compaction_view")
    op.drop_table("compaction_view")
    op.drop_table("compaction_standing")
    op.drop_index("compaction_segment_of_thread", table_name="compaction_segment")
    op.drop_table("compaction_segment")
    op.drop_index("compaction_row_of_thread", table_name="compaction_row")
    op.drop_index("compaction_row_by_unit", table_name="compaction_row")
    op.drop_index("compaction_row_by_status", table_name="compaction_row")
    op.drop_table("compaction_row")
    op.drop_index("compaction_reply_of_thread", table_name="compaction_reply")
    op.drop_table("compaction_reply")
    op.drop_index("compaction_promotion_of_thread", table_name="compaction_promotion")
    op.drop_index("compaction_promotion_due", table_name="compaction_promotion")
    op.drop_table("compaction_promotion")
    op.drop_table("compaction_erasure")
    op.drop_table("compaction_analysis")
    op.drop_index(
        "compaction_open",
        table_name="compaction",
        sqlite_where=sa.text("status IN ('planned', 'summarising')"),
        postgresql_where=sa.text("status IN ('planned', 'summarising')"),
    )
    op.drop_index("compaction_of_thread", table_name="compaction")
    op.drop_table("compaction")
