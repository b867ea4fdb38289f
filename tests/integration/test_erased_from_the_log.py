"""What was erased is gone from SQLite's write-ahead log, or the erasure is not done."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, text

from tests.integration.test_memory_erasing import files_with
from tests.support.api import open_api
from tests.support.memory_house import NOW
from threadmark.app.access import Scope
from threadmark.db import engine as db_engine
from threadmark.memory import Forget
from threadmark.state import Database, DatabaseAway, migrate, open_engine

WORD = "word-xylophone"


@contextmanager
def a_reader(path: Path) -> Iterator[None]:
    """Another process's snapshot: a backup, a long export."""
    engine = create_engine(f"sqlite:///{path}", connect_args={"isolation_level": None})
    with engine.connect() as connection:
        connection.exec_driver_sql("BEGIN")
        connection.execute(text("SELECT count(*) FROM sqlite_master")).scalar_one()
        yield
        connection.exec_driver_sql("ROLLBACK")
    engine.dispose()


def make_a_note(connection: Connection) -> None:
    """Write something into the log."""
    connection.execute(text("CREATE TABLE note (words TEXT)"))


async def test_an_erasure_is_not_done_while_the_log_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays open, and is done when it is performed again."""
    monkeypatch.setattr(db_engine, "BUSY_TIMEOUT_MS", 50)
    async with open_api(tmp_path) as api:
        monkeypatch.setattr(db_engine.truncate_log, "__kwdefaults__", {"wait_s": 0.1})
        admin = await api.key(Scope.ADMIN)
        recollection = api.resources.wired.recollection
        item = {"text": WORD, "namespace": ["shared"]}
        assert (await api.call("POST", "/memories", admin, json={"items": [item]})).status_code == 200
        with a_reader(tmp_path / "memory.db"):
            waiting = await recollection.erase(Forget(tenant=True), tenant_id="default", now=NOW)
            assert (waiting.is_done, "memory.db-wal" in files_with(tmp_path, WORD)) == (False, True)

        done = await recollection.resume_erasure(waiting.erasure_id, tenant_id="default", now=NOW)

        assert (done.is_done, files_with(tmp_path, WORD)) == (True, [])


async def test_the_journals_log_is_not_called_empty_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task that erased in threads is tried again then."""
    monkeypatch.setattr(db_engine, "BUSY_TIMEOUT_MS", 50)
    monkeypatch.setattr(db_engine.truncate_log, "__kwdefaults__", {"wait_s": 0.1})
    path = tmp_path / "state.db"
    engine = open_engine(f"sqlite:///{path}", write=True)
    migrate(engine)
    engine.dispose()
    database = Database.open(f"sqlite:///{path}")
    with a_reader(path):
        await database.write(make_a_note)
        with pytest.raises(DatabaseAway):
            await database.empty_log()

    await database.empty_log()

    assert (tmp_path / "state.db-wal").stat().st_size == 0
    await database.close()
