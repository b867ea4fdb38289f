"""When each long-lived loop of a worker last completed a round, as its heartbeats report."""

import sqlalchemy as sa
from alembic import op

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Constant defaults: a worker of the previous version still registers and beats without these columns.
    op.add_column("worker", sa.Column("beat_at", BIG, nullable=False, server_default=sa.text("0")))
    op.add_column("worker", sa.Column("loops", sa.Text(), nullable=False, server_default=sa.text("'[]'")))


def downgrade() -> None:
    op.drop_column("worker", "loops")
    op.drop_column("worker", "beat_at")
