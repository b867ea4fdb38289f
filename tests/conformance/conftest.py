"""The databases that every spec of this folder runs over: one spec, no second copy of a test."""

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.conformance.store import Store
from tests.support.servers import PrivatePostgres
from threadmark.state import migrate, open_engine


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file at the head revision, to be copied."""
    path = tmp_path_factory.mktemp("template") / "state.db"
    engine = open_engine(f"sqlite:///{path}", write=True)
    migrate(engine)
    engine.dispose()
    return path


@pytest.fixture
def sqlite_state_url(migrated_sqlite: Path, tmp_path: Path) -> str:
    """The address of an empty, migrated SQLite database that is this test's own."""
    path = tmp_path / "state.db"
    shutil.copyfile(migrated_sqlite, path)
    return f"sqlite:///{path}"


@pytest.fixture(scope="session")
def migrated_postgresql(private_postgres: PrivatePostgres) -> str:
    """The name of a PostgreSQL database at the head revision, to be copied."""
    name = private_postgres.create_database()
    engine = open_engine(private_postgres.url(name), write=True)
    migrate(engine)
    engine.dispose()
    return name


@pytest.fixture
def postgresql_state_url(private_postgres: PrivatePostgres, migrated_postgresql: str) -> Iterator[str]:
    """The address of an empty, migrated PostgreSQL database that is this test's own."""
    with private_postgres.fresh_database(migrated_postgresql) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def state_url(request: pytest.FixtureRequest) -> str:
    """The address of an empty, migrated database, of each kind in turn: fixture `<kind>_state_url`."""
    return str(request.getfixturevalue(f"{request.param}_state_url"))


@pytest.fixture
async def store(state_url: str) -> AsyncIterator[Store]:
    """The database, open."""
    store = Store.open(state_url)
    yield store
    await store.database.close()


@pytest.fixture
async def other_store(state_url: str) -> AsyncIterator[Store]:
    """The same database, as another process has it open."""
    store = Store.open(state_url)
    yield store
    await store.database.close()
