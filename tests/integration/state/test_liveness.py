"""Who is dead, by the advisory locks of a real PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from threadmark.state import AdvisoryLocks, migrate, open_engine, register
from threadmark.state.runs import fallen_locks, session_locks
from threadmark.state.runs.session_locks import HostLocks

WORKER = "worker-1"


@pytest.fixture
def engine(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """A database in which a worker has enrolled; locks mean something from the start."""
    monkeypatch.setattr(session_locks, "SETTLE_S", 0.0)
    engine = open_engine(postgres_url, write=True)
    monkeypatch.setattr(fallen_locks, "GRACE_S", 0.0)
    migrate(engine)
    with engine.begin() as connection:
        register(connection, WORKER, 600.0, "{}")
    yield engine
    engine.dispose()


def test_a_worker_lives_as_long_as_its_session(engine: Engine) -> None:
    """And is dead as soon as that is gone, whatever its lease says."""
    worker, survivor = AdvisoryLocks(engine), AdvisoryLocks(engine)
    worker.hold(WORKER)
    worker.refresh(WORKER)
    assert survivor.dead() == []

    worker.release(WORKER)
    assert survivor.dead() == [WORKER]


def test_a_lock_that_a_lost_session_still_has_is_asked_for_again(engine: Engine) -> None:
    """The server notices late that a connection broke: a worker that reconnected meanwhile is not declared dead."""
    lost, worker, survivor = AdvisoryLocks(engine), AdvisoryLocks(engine), AdvisoryLocks(engine)
    lost.hold(WORKER)
    worker.refresh(WORKER)
    assert survivor.dead() == []

    lost.release(WORKER)
    worker.refresh(WORKER)

    assert survivor.dead() == []
    worker.release(WORKER)


def test_sessions_that_are_cut_together_are_nobodys_death(engine: Engine) -> None:
    """The observer lost its own with them. Each sees the cut without asking the server, and takes its lock again."""
    worker, survivor = AdvisoryLocks(engine), AdvisoryLocks(engine)
    with engine.begin() as connection:
        register(connection, "worker-2", 600.0, "{}")
    worker.hold(WORKER)
    survivor.hold("worker-2")
    assert not worker.is_lost()
    with engine.connect() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    assert survivor.is_lost()
    survivor.refresh("worker-2")
    assert survivor.dead() == []

    assert worker.is_lost()
    worker.refresh(WORKER)
    assert not worker.is_lost()
    assert survivor.dead() == []
    worker.release(WORKER)
    survivor.release("worker-2")


def test_on_one_machine_the_lock_file_has_the_last_word(engine: Engine, tmp_path: Path) -> None:
    """A session that was cut says nothing of a process whose file is locked; a file without a holder says all."""
    worker, survivor = (HostLocks.over(AdvisoryLocks(engine), tmp_path) for _ in range(2))
    assert isinstance(worker, HostLocks)
    assert isinstance(survivor, HostLocks)
    worker.hold(WORKER)
    assert survivor.dead() == []
    with engine.connect() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    assert survivor.dead() == []
    (lock,) = tmp_path.glob("*/*.lock")
    worker.release(WORKER)
    lock.touch()

    assert survivor.dead() == [WORKER]
    survivor.forget(WORKER)
    assert not lock.exists()
