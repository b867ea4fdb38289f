"""What turns are tested on: a SQLite database of their own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conformance.store import Store
from threadmark.state import migrate, open_engine


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The address of an empty, migrated database."""
    address = f"sqlite:///{tmp_path / 'state.db'}"
    engine = open_engine(address, write=True)
    migrate(engine)
    engine.dispose()
    return address


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    """The database, open."""
    store = Store.open(url)
    yield store
    await store.database.close()
