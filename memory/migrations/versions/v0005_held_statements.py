"""An index for statements that are held: without it remembering one reads all rows of its namespace."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

KNOWN = sa.text("known_to = 4611686018427387904")


def upgrade() -> None:
    op.create_index(
        "memory_assertion_known",
        "memory_assertion",
        ["namespace_id", "digest"],
        sqlite_where=KNOWN,
        postgresql_where=KNOWN,
    )


def downgrade() -> None:
    op.drop_index("memory_assertion_known", table_name="memory_assertion", sqlite_where=KNOWN, postgresql_where=KNOWN)
