"""When the words of a ledger became digests."""

import sqlalchemy as sa
from alembic import op

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("compaction", sa.Column("words_gone_at", BIG, nullable=True))
    op.create_index(
        "compaction_with_words",
        "compaction",
        ["committed_at"],
        unique=False,
        sqlite_where=sa.text("words_gone_at IS NULL"),
        postgresql_where=sa.text("words_gone_at IS NULL"),
    )


def downgrade() -> None:
    op.drop_index(
        "compaction_with_words",
        table_name="compaction",
        sqlite_where=sa.text("words_gone_at IS NULL"),
        postgresql_where=sa.text("words_gone_at IS NULL"),
    )
    op.drop_column("compaction", "words_gone_at")
