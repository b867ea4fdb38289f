"""Named policies, each version of them a row."""

import sqlalchemy as sa
from alembic import op

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "compaction_policy",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("policy", sa.LargeBinary(), nullable=True),
        sa.Column("requested_by", sa.String(), nullable=False),
        sa.Column("created_at", BIG, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "name", "version"),
    )


def downgrade() -> None:
    op.drop_table("compaction_policy")
