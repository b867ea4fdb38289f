"""Tasks: background work that outlives the request for it."""

import sqlalchemy as sa
from alembic import op

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "task",
        sa.Column("number", BIG, autoincrement=True, nullable=False),
        sa.Column("task_id", sa.String(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("payload", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=True),
        sa.Column("fence", BIG, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("deaths", sa.Integer(), nullable=False),
        sa.Column("due_at", BIG, nullable=False),
        sa.Column("progress", sa.String(), nullable=True),
        sa.Column("result", sa.String(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("created_at", BIG, nullable=False),
        sa.Column("updated_at", BIG, nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("task_id"),
        sa.UniqueConstraint("tenant_id", "kind", "key"),
        sqlite_autoincrement=True,
    )
    op.create_index("task_of_tenant", "task", ["tenant_id", "number"], unique=False)
    pending, running = sa.text("status = 'pending'"), sa.text("status = 'running'")
    over = sa.text("status IN ('done', 'cancelled')")
    op.create_index("task_due", "task", ["due_at", "number"], sqlite_where=pending, postgresql_where=pending)
    op.create_index("task_running", "task", ["owner"], sqlite_where=running, postgresql_where=running)
    op.create_index("task_over", "task", ["updated_at"], sqlite_where=over, postgresql_where=over)


def downgrade() -> None:
    op.drop_table("task")
