"""The count of erasures in a thread's journal, so that no process continues from a fold with erased text."""

import sqlalchemy as sa
from alembic import op

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # A constant default rewrites no rows, so the table is locked only briefly.
    op.add_column("thread", sa.Column("erasures", BIG, nullable=False, server_default=sa.text("0")))


def downgrade() -> None:
    op.drop_column("thread", "erasures")
