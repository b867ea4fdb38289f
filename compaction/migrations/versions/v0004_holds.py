"""In the name of which worker a compaction is held."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("compaction", sa.Column("worker_id", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("compaction", "worker_id")
