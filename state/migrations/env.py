"""Alembic's entry point; it uses the connection that `migrate` opened."""

from alembic import context

from threadmark.state.migrations import VERSION_TABLE
from threadmark.state.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table=VERSION_TABLE,
    transactional_ddl=False,
)
context.run_migrations()
