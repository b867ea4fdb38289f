"""Imports are staged: rows that nobody sees until the import that they belong to is published."""

import sqlalchemy as sa
from alembic import op

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NOT_PUBLISHED = "status <> 'published'"
IMPORTED = "import_number IS NOT NULL"
TABLES = ("memory_assertion", "memory_evidence", "memory_succession", "memory_recall")

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "memory_import",
        sa.Column("number", BIG, autoincrement=True, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("queued_to", BIG, nullable=False),
        sa.Column("touched_at", BIG, nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "memory_import_one_open",
        "memory_import",
        ["tenant_id"],
        unique=True,
        sqlite_where=sa.text(NOT_PUBLISHED),
        postgresql_where=sa.text(NOT_PUBLISHED),
    )
    op.create_table(
        "memory_import_line",
        sa.Column("number", BIG, autoincrement=True, nullable=False),
        sa.Column("import_number", BIG, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("line", BIG, nullable=False),
        sa.Column("row", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
    )
    op.create_index("memory_import_line_by_kind", "memory_import_line", ["import_number", "kind", "key"])
    for table in TABLES:
        op.add_column(table, sa.Column("import_number", BIG, nullable=True))
        op.create_index(
            f"{table}_by_import",
            table,
            ["import_number", "number"],
            sqlite_where=sa.text(IMPORTED),
            postgresql_where=sa.text(IMPORTED),
        )


def downgrade() -> None:
    for table in TABLES:
        op.drop_index(
            f"{table}_by_import",
            table_name=table,
            sqlite_where=sa.text(IMPORTED),
            postgresql_where=sa.text(IMPORTED),
        )
        op.drop_column(table, "import_number")
    op.drop_index("memory_import_line_by_kind", table_name="memory_import_line")
    op.drop_table("memory_import_line")
    op.drop_index(
        "memory_import_one_open",
        table_name="memory_import",
        sqlite_where=sa.text(NOT_PUBLISHED),
        postgresql_where=sa.text(NOT_PUBLISHED),
    )
    op.drop_table("memory_import")
