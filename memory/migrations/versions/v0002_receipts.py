"""Receipts: the answers of changes that were asked for with an idempotency key."""

import sqlalchemy as sa
from alembic import op

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "memory_receipt",
        sa.Column("number", BIG, autoincrement=True, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("key_digest", sa.String(), nullable=False),
        sa.Column("request_digest", sa.String(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("words_of", sa.String(), nullable=True),
        sa.Column("created_at", BIG, nullable=False),
        sa.Column("expires_at", BIG, nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("tenant_id", "key_digest"),
    )
    op.create_index("memory_receipt_by_expiry", "memory_receipt", ["expires_at"])
    op.create_index(
        "memory_receipt_by_words",
        "memory_receipt",
        ["words_of"],
        sqlite_where=sa.text("words_of IS NOT NULL"),
        postgresql_where=sa.text("words_of IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index(
        "memory_receipt_by_words",
        table_name="memory_receipt",
        sqlite_where=sa.text("words_of IS NOT NULL"),
        postgresql_where=sa.text("words_of IS NOT NULL"),
    )
    op.drop_index("memory_receipt_by_expiry", table_name="memory_receipt")
    op.drop_table("memory_receipt")
