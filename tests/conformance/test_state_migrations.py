"""Migrations: what they make is what the code declares, and they lead down again."""

from collections.abc import Iterator

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, inspect, text

from tests.conformance.store import Store
from threadmark.state import current_revision, head_revision, migrate, open_engine
from threadmark.state.migrations import VERSION_TABLE
from threadmark.state.tables import METADATA


@pytest.fixture
def engine(state_url: str) -> Iterator[Engine]:
    """An engine over a migrated, empty database."""
    engine = open_engine(state_url, write=True)
    yield engine
    engine.dispose()


def tables(engine: Engine) -> set[str]:
    """The tables that a database has."""
    return set(inspect(engine).get_table_names())


def test_the_migrated_schema_is_the_declared_one(engine: Engine) -> None:
    """Tables, columns, types, keys and indexes: nothing is missing and nothing is left over."""
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "version_table": VERSION_TABLE, "target_metadata": METADATA}
        )
        assert compare_metadata(context, METADATA) == []


def test_partial_indexes_keep_their_predicates(engine: Engine) -> None:
    """The one running run of a thread is a rule of the database itself; comparing schemas does not look there."""
    rule = {each["name"]: each for each in inspect(engine).get_indexes("run")}["run_running"]

    assert rule["unique"]
    assert any("running" in str(value) for value in rule["dialect_options"].values())


def test_a_migration_up_is_done_once(engine: Engine) -> None:
    """At the head there is nothing to do."""
    assert current_revision(engine) == head_revision()
    migrate(engine)
    assert current_revision(engine) == head_revision()


def test_the_migrations_lead_down_and_up_again(engine: Engine) -> None:
    """Down to nothing but the table of versions, and up to the same schema."""
    before = tables(engine)
    migrate(engine, "base")
    assert current_revision(engine) is None
    assert tables(engine) <= {VERSION_TABLE}

    migrate(engine)

    assert tables(engine) == before
    assert current_revision(engine) == head_revision()


async def test_a_migrated_database_takes_a_run(store: Store) -> None:
    """From acceptance to an entry in a journal that verifies."""
    claimed, _ = await store.begun("hello")

    assert await store.journal.verify(claimed.thread) == []


def test_a_database_that_nobody_migrated_has_no_revision(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The start of a server tells it from one that is behind."""
    engine = open_engine(f"sqlite:///{tmp_path_factory.mktemp('new') / 'state.db'}", write=True)
    try:
        assert current_revision(engine) is None
        with engine.connect() as connection:
            assert connection.execute(text("PRAGMA journal_mode")).scalar_one() == "wal"
    finally:
        engine.dispose()
