"""How a unit is written, for finding it as a whole by an index."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("compaction_row", sa.Column("surface", sa.String(), nullable=True))
    op.execute(sa.text("UPDATE compaction_row SET surface = substr(folded, 1, 64)"))
    op.create_index("compaction_row_by_surface", "compaction_row", ["tenant_id", "surface"], unique=False)


def downgrade() -> None:
    op.drop_index("compaction_row_by_surface", table_name="compaction_row")
    op.drop_column("compaction_row", "surface")
