"""The effect that the tool of a question had when it was asked, so that an answer is not spent on another one."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Nullable: a worker of the version before goes on to ask without it, and nothing is said of such questions.
    op.add_column("wait", sa.Column("effect", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("wait", "effect")
