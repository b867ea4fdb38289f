"""What compactions cost, and the purses that several of them share."""

import sqlalchemy as sa
from alembic import op

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("compaction", sa.Column("purse_id", sa.String(), nullable=True))
    op.add_column("compaction", sa.Column("cost", BIG, nullable=True))
    op.create_table(
        "compaction_purse",
        sa.Column("purse_id", sa.String(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("total", BIG, nullable=True),
        sa.Column("spent", BIG, nullable=False),
        sa.PrimaryKeyConstraint("purse_id"),
    )


def downgrade() -> None:
    op.drop_table("compaction_purse")
    op.drop_column("compaction", "cost")
    op.drop_column("compaction", "purse_id")
