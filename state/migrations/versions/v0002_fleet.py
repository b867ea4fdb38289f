"""Counts of workers, for operators."""

import sqlalchemy as sa
from alembic import op

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

NAMES = ("claim_count", "orphan_count", "recent_claim_count", "loop_lag_us")


def upgrade() -> None:
    # A constant default rewrites no rows, so the table is locked only briefly.
    for name in NAMES:
        op.add_column("worker", sa.Column(name, BIG, nullable=False, server_default=sa.text("0")))


def downgrade() -> None:
    for name in reversed(NAMES):
        op.drop_column("worker", name)
