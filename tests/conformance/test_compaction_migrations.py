"""The migrations of compaction make the tables that its code expects, on both databases, beside those of state."""

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, inspect

import state
from compaction import current_revision, head_revision, migrate
from compaction.migrations import VERSION_TABLE
from compaction.tables import METADATA
from tests.conformance.compacting import compaction_engine

__all__ = ["compaction_engine"]


def tables(engine: Engine) -> set[str]:
    """The tables that a database has."""
    return set(inspect(engine).get_table_names())


def test_the_migrated_schema_is_the_declared_one(compaction_engine: Engine) -> None:
    """Tables, columns, types, keys and indexes: nothing is missing."""
    with compaction_engine.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": True,
                "version_table": VERSION_TABLE,
                "include_name": lambda name, kind, _: kind != "table" or name in METADATA.tables,
            },
        )
        assert compare_metadata(context, METADATA) == []
    assert current_revision(compaction_engine) == head_revision()


def test_the_migrations_lead_down_and_up_again(compaction_engine: Engine) -> None:
    """Down to the tables of state and the table of versions; state's own history does not move."""
    before = tables(compaction_engine)

    migrate(compaction_engine, "base")

    assert not tables(compaction_engine) & set(METADATA.tables)
    assert current_revision(compaction_engine) is None
    assert state.current_revision(compaction_engine) == state.head_revision()

    migrate(compaction_engine)

    assert tables(compaction_engine) == before
