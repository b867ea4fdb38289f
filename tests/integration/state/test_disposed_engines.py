"""A connection that is given back after its engine was disposed of is closed."""

import gc
import warnings
from pathlib import Path

import pytest
from sqlalchemy import text

from threadmark.state import open_engine


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_thread_that_comes_late_leaves_no_connection_behind(
    request: pytest.FixtureRequest, tmp_path: Path, database: str
) -> None:
    """A probe may still be asking when its worker closes."""
    url = f"sqlite:///{tmp_path}/state.db" if database == "sqlite" else request.getfixturevalue("postgres_url")
    engine = open_engine(url, write=True)
    connection = engine.connect()
    connection.execute(text("SELECT 1"))
    driver = connection.connection.driver_connection

    engine.dispose()
    connection.close()

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        del connection
        if database == "postgresql":
            assert driver is not None
            assert driver.closed
        del driver
        gc.collect()
    assert [str(each.message) for each in warned] == []
