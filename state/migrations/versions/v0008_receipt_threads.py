"""The thread that a stored reply is about, so that it goes when the thread goes."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
OF_THREAD = sa.text("thread IS NOT NULL")
OF_RUN = sa.text("thread IS NULL AND run_id IS NOT NULL")


def upgrade() -> None:
    op.add_column("receipt", sa.Column("thread", BIG, nullable=True))
    op.execute(
        "UPDATE receipt SET thread = (SELECT run.thread FROM run WHERE run.run_id = receipt.run_id)"
        " WHERE run_id IS NOT NULL"
    )
    for name, column, where in (("receipt_of_thread", "thread", OF_THREAD), ("receipt_of_run", "run_id", OF_RUN)):
        op.create_index(name, "receipt", [column], sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    op.drop_index("receipt_of_run", table_name="receipt")
    op.drop_index("receipt_of_thread", table_name="receipt")
    op.drop_column("receipt", "thread")
