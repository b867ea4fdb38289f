"""What Alembic runs: over the connection that `threadmark.memory.migrations.migrate` opened."""

from alembic import context

from threadmark.memory.migrations import VERSION_TABLE
from threadmark.memory.store.job_tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table=VERSION_TABLE,
    transactional_ddl=False,
)
context.run_migrations()
