"""Who asked for dropped units again, and what dry runs of jobs found of each thread."""

import sqlalchemy as sa
from alembic import op

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "compaction_recall",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("thread", BIG, nullable=False),
        sa.Column("compaction_id", sa.String(), nullable=False),
        sa.Column("row_id", sa.String(), nullable=False),
        sa.Column("how", sa.String(), nullable=False),
        sa.Column("requested_by", sa.String(), nullable=False),
        sa.Column("at", BIG, nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_index("compaction_recall_of_thread", "compaction_recall", ["thread", "at"], unique=False)
    op.create_table(
        "compaction_outlook",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("thread_id", sa.String(), nullable=False),
        sa.Column("thread", BIG, nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "thread_id"),
    )
    op.create_index("compaction_outlook_of_thread", "compaction_outlook", ["thread"], unique=False)


def downgrade() -> None:
    op.drop_index("compaction_outlook_of_thread", table_name="compaction_outlook")
    op.drop_table("compaction_outlook")
    op.drop_index("compaction_recall_of_thread", table_name="compaction_recall")
    op.drop_table("compaction_recall")
