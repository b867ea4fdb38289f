"""The tool's effect when a question was asked, so that an answer is never used for a different effect."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Nullable: a worker of the previous version still asks without it, and such questions are not checked.
    op.add_column("wait", sa.Column("effect", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("wait", "effect")
