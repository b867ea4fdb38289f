"""API keys, and the secret that seals cursors."""

import secrets

import sqlalchemy as sa
from alembic import op

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "api_key",
        sa.Column("number", BIG, autoincrement=True, nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("scopes", sa.String(), nullable=False),
        sa.Column("secret_digest", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", BIG, nullable=False),
        sa.Column("expires_at", BIG, nullable=True),
        sa.Column("revoked_at", BIG, nullable=True),
        sa.Column("last_used_at", BIG, nullable=True),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("key_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("api_key_by_tenant", "api_key", ["tenant_id", "number"], unique=False)
    server_secret = op.create_table(
        "server_secret",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    # Made here, once for the database, so that two processes that start together cannot make two.
    op.bulk_insert(server_secret, [{"name": "cursor", "value": secrets.token_bytes(32)}])


def downgrade() -> None:
    op.drop_table("server_secret")
    op.drop_index("api_key_by_tenant", table_name="api_key")
    op.drop_table("api_key")
