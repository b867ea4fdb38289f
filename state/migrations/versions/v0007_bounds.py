"""Indexes for counting a tenant's scheduled runs, open questions and open tasks."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

SCHEDULED = sa.text("status = 'pending' AND attempts = 0 AND due_at > 0")
OPEN = sa.text("status = 'open'")
UNDONE = sa.text("status IN ('pending', 'running')")


def upgrade() -> None:
    for name, table, columns, where in (
        ("run_scheduled", "run", ["tenant_id", "due_at"], SCHEDULED),
        ("wait_open", "wait", ["tenant_id"], OPEN),
        ("task_undone", "task", ["tenant_id", "kind"], UNDONE),
    ):
        op.create_index(name, table, columns, sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    op.drop_index("task_undone", table_name="task")
    op.drop_index("wait_open", table_name="wait")
    op.drop_index("run_scheduled", table_name="run")
