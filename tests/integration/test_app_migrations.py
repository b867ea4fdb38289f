"""The migrations of the API make the tables that its code expects, on both databases, beside those of state."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, create_engine, inspect, select

from threadmark import state
from threadmark.app.access import tables
from threadmark.app.migrations import VERSION_TABLE, current_revision, head_revision, migrate


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """An empty database of each kind."""
    if request.param == "sqlite":
        engine = state.open_engine(f"sqlite:///{tmp_path}/state.db", write=True)
    else:
        engine = create_engine(request.getfixturevalue("postgres_url"))
    yield engine
    engine.dispose()


def test_the_migrated_tables_are_those_of_the_code(engine: Engine) -> None:
    """A column in the code and not in a migration, or the other way round, would be found by the first user."""
    migrate(engine)

    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, tables.METADATA) == []
    assert current_revision(engine) == head_revision()


def test_migrating_again_changes_nothing(engine: Engine) -> None:
    """Every start migrates: the secret that seals cursors stays, and with it the cursors that clients hold."""
    migrate(engine)
    with engine.connect() as connection:
        before = connection.execute(select(tables.server_secret)).all()

    migrate(engine)

    with engine.connect() as connection:
        assert connection.execute(select(tables.server_secret)).all() == before
    assert (len(before), len(before[0].value)) == (1, 32)


def test_the_two_histories_live_side_by_side(tmp_path: Path) -> None:
    """State and API share a database and not a version table: either may move on its own."""
    engine = state.open_engine(f"sqlite:///{tmp_path}/state.db", write=True)
    try:
        state.migrate(engine)
        assert current_revision(engine) is None
        migrate(engine)

        assert {"api_key", "thread", VERSION_TABLE, "state_alembic_version"} <= set(inspect(engine).get_table_names())
        assert (state.current_revision(engine), current_revision(engine)) == (state.head_revision(), head_revision())
    finally:
        engine.dispose()
