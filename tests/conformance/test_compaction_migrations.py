"""The migrations of compaction make the tables that its code expects, on both databases, beside those of state."""

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, column, insert, inspect, select, table

from tests.conformance.compacting import compaction_engine
from threadmark import state
from threadmark.compaction import current_revision, head_revision, migrate
from threadmark.compaction import tables as tables_of_compaction
from threadmark.compaction.migrations import VERSION_TABLE
from threadmark.compaction.tables import METADATA

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


def test_rows_of_older_ledgers_are_found_by_how_they_are_written(compaction_engine: Engine) -> None:
    """The migration fills in what the index is over."""
    migrate(compaction_engine, "0006")
    row = {
        "compaction_id": "c", "number": 0, "row_id": "r", "tenant_id": "t", "thread": 1, "unit": "atom", "cls": "name",
        "status": "dropped", "critical": False, "first_seq": 1, "last_seq": 1, "folded": "é" * 100, "body": b"{}",
    }  # fmt: skip
    with compaction_engine.begin() as connection:
        connection.execute(insert(table("compaction_row", *map(column, row))).values(row))

    migrate(compaction_engine)

    with compaction_engine.connect() as connection:
        assert connection.scalars(select(tables_of_compaction.ledger_row.c.surface)).all() == ["é" * 64]
