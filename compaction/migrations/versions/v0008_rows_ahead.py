"""How many rows of a ledger were written before the commit of their compaction."""

import sqlalchemy as sa
from alembic import op

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # A constant default rewrites no row: the table is locked for an instant.
    op.add_column("compaction", sa.Column("rows_ahead", BIG, nullable=False, server_default=sa.text("0")))
    op.create_index(
        "compaction_with_rows_ahead",
        "compaction",
        ["thread"],
        unique=False,
        sqlite_where=sa.text("rows_ahead > 0"),
        postgresql_where=sa.text("rows_ahead > 0"),
    )


def downgrade() -> None:
    # The code before reads every row that it finds.
    op.execute(
        sa.text(
            "DELETE FROM compaction_row WHERE compaction_id IN "
            "(SELECT compaction_id FROM compaction WHERE rows_ahead > 0)"
        )
    )
    op.drop_index("compaction_with_rows_ahead", table_name="compaction")
    op.drop_column("compaction", "rows_ahead")
