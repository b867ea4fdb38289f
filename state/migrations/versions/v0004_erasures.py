"""How often words were taken out of a thread's journal, so that no process goes on from a fold that has them."""

import sqlalchemy as sa
from alembic import op

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # A constant default rewrites no row: the table is locked for an instant.
    op.add_column("thread", sa.Column("erasures", BIG, nullable=False, server_default=sa.text("0")))


def downgrade() -> None:
    op.drop_column("thread", "erasures")
