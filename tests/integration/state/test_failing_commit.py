"""A disk that refuses a commit, once: the write is refused, and the next one is not."""

import sqlite3
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest
from sqlalchemy import Connection

from threadmark.db import Condition
from threadmark.state import Database, DatabaseAway


class Refusing(sqlite3.Connection):
    """A connection whose next commit fails if `refusals` has an entry left; the transaction stays open then."""

    refusals: ClassVar[list[int]] = []

    def commit(self) -> None:
        if self.in_transaction and self.refusals:
            error = sqlite3.OperationalError("refused")
            error.sqlite_errorcode = self.refusals.pop()
            raise error
        super().commit()


def write_row(connection: Connection, name: str) -> None:
    """Something that changes the database."""
    connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS mark (name TEXT)")
    connection.exec_driver_sql("INSERT INTO mark VALUES (?)", (name,))


def count_rows(connection: Connection) -> int:
    """What is there."""
    return int(connection.exec_driver_sql("SELECT COUNT(*) FROM mark").scalar_one())


@pytest.mark.parametrize(
    ("why", "condition"),
    [(sqlite3.SQLITE_IOERR_FSYNC, Condition.IO_ERROR), (sqlite3.SQLITE_FULL, Condition.DISK_FULL)],
)
async def test_a_refused_commit_does_not_spoil_the_next(
    why: int, condition: Condition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer lets the half-done transaction go; before, it held the lock, and every later write was refused too."""
    url = f"sqlite:///{tmp_path / 'state.db'}"
    monkeypatch.setattr(sqlite3.dbapi2, "connect", partial(sqlite3.dbapi2.connect, factory=Refusing))
    database = Database.open(url)
    try:
        await database.write(lambda connection: write_row(connection, "first"))
        Refusing.refusals.append(why)

        with pytest.raises(DatabaseAway) as caught:
            await database.write(lambda connection: write_row(connection, "refused"))
        assert (caught.value.condition, database.condition) == (condition, condition)
        await database.write(lambda connection: write_row(connection, "next"))

        assert await database.read(count_rows) == 2
        assert database.condition is None
    finally:
        await database.close()
