"""What Alembic runs: over the connection that `memory.migrations.migrate` opened."""

from alembic import context

from memory.migrations import VERSION_TABLE
from memory.tables_jobs import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table=VERSION_TABLE,
    transactional_ddl=False,
)
context.run_migrations()
