"""PostgreSQL falls, is cut off, is locked, or has few connections: what state says then, and what it keeps."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import psycopg
import pytest
from sqlalchemy import Connection, text

from tests.support.servers import PrivatePostgres
from tests.support.waiting import wait_until
from threadmark.db import Limits
from threadmark.state import Database, DatabaseAway, migrate, open_engine

LOCK_TIMEOUT_MS = 200
IMPATIENT = Limits(request_s=0.3)
CALLER_COUNT = 20
NOTES = "CREATE TABLE note (name text PRIMARY KEY, count bigint NOT NULL DEFAULT 0)"
COUNT_UP = text("UPDATE note SET count = count + 1 WHERE name = :name")


@pytest.fixture(scope="module")
def postgres() -> Iterator[PrivatePostgres]:
    """A server that these tests stop, with impatient deadlocks."""
    with PrivatePostgres(settings={"deadlock_timeout": "50ms"}) as server:
        yield server


@pytest.fixture
def url(postgres: PrivatePostgres, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty database with two notes; nobody waits long for a lock."""
    monkeypatch.setattr("threadmark.db.postgresql.LOCK_TIMEOUT_MS", LOCK_TIMEOUT_MS)
    with postgres.fresh_database() as url:
        engine = open_engine(url, write=True)
        migrate(engine)
        with engine.begin() as connection:
            connection.execute(text(NOTES))
            connection.execute(text("INSERT INTO note (name) VALUES ('left'), ('right')"))
        engine.dispose()
        yield url


def count_up(connection: Connection, *names: str, between: Callable[[], object] = lambda: None) -> None:
    """Count each note up, in this order."""
    for name in names:
        connection.execute(COUNT_UP, {"name": name})
        between()


def counts(connection: Connection) -> dict[str, int]:
    """What the notes count."""
    return {name: count for name, count in connection.execute(text("SELECT name, count FROM note"))}


async def test_a_database_that_is_away_is_said_so_and_found_again(postgres: PrivatePostgres, url: str) -> None:
    """Reads and writes fail with DatabaseAway while it is down, and work when it is back, without a restart (F13)."""
    database = Database.open(url, limits=IMPATIENT)
    await database.write(lambda connection: count_up(connection, "left"))
    assert await database.read(counts) == {"left": 1, "right": 0}
    await asyncio.to_thread(postgres.stop, "immediate")

    with pytest.raises(DatabaseAway, match="does not answer"):
        await database.read(counts)
    with pytest.raises(DatabaseAway):
        await database.write(lambda connection: count_up(connection, "left"))

    postgres.start()
    await database.write(lambda connection: count_up(connection, "right"))
    assert await database.read(counts) == {"left": 1, "right": 1}
    await database.close()


async def test_a_write_that_was_cut_off_before_its_commit_is_done_once(url: str) -> None:
    """Its backend is terminated in the middle: nothing of the first try is there, the second one is whole (F13)."""
    database = Database.open(url)
    tries: list[int] = []

    def cut_off_once(connection: Connection) -> None:
        connection.execute(COUNT_UP, {"name": "left"})
        tries.append(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())
        if len(tries) == 1:
            terminate(url, tries[0])
        connection.execute(COUNT_UP, {"name": "right"})

    await database.write(cut_off_once)

    assert len(tries) == 2
    assert await database.read(counts) == {"left": 1, "right": 1}
    await database.close()


async def test_writes_that_lock_each_other_are_both_done(url: str) -> None:
    """A deadlock of two units on two connections: the server undoes one, and it is done again (F15)."""
    database = Database.open(url)
    meeting = threading.Barrier(2)
    met = threading.local()

    def meet() -> None:
        if not getattr(met, "once", False):
            met.once = True
            meeting.wait(10)

    await asyncio.gather(
        database.write(lambda connection: count_up(connection, "left", "right", between=meet), thread=0),
        database.write(lambda connection: count_up(connection, "right", "left", between=meet)),
    )

    assert await database.read(counts) == {"left": 2, "right": 2}
    await database.close()


async def test_a_lock_that_is_held_for_long_is_waited_for_again(url: str) -> None:
    """Past the lock time-out the write is tried again as long as writers wait for a database; then it says so (F15)."""
    database = Database.open(url, limits=Limits(request_s=30.0))
    tries: list[int] = []

    def patient(connection: Connection) -> None:
        tries.append(len(tries))
        count_up(connection, "left")

    with psycopg.connect(plain(url)) as holder:
        holder.execute("UPDATE note SET count = 10 WHERE name = 'left'")
        writing = asyncio.create_task(database.write(patient))
        await wait_until(lambda: len(tries) > 1, description="the write to be refused and tried again")
        holder.commit()

    await writing
    assert await database.read(counts) == {"left": 11, "right": 0}
    await database.close()


async def test_few_connections_serve_many_callers_and_none_is_left(postgres: PrivatePostgres, url: str) -> None:
    """Twenty callers at once, cancelled and failing ones among them, never hold more than the bound (F16)."""
    database = Database.open(url)

    def fails(connection: Connection) -> None:
        count_up(connection, "left")
        raise ValueError("refused")

    seen: list[int] = []
    for _ in range(3):
        calls = [database.write(lambda connection: count_up(connection, "right")) for _ in range(CALLER_COUNT)]
        calls += [database.write(fails) for _ in range(CALLER_COUNT)]
        reads = [asyncio.create_task(database.read(counts)) for _ in range(CALLER_COUNT)]
        for each in reads[::3]:
            each.cancel()
        outcomes = await asyncio.gather(*calls, *reads, return_exceptions=True)
        assert sum(isinstance(each, ValueError) for each in outcomes) == CALLER_COUNT
        seen.append(await asyncio.to_thread(connection_count, url))

    assert await database.read(counts) == {"left": 0, "right": 3 * CALLER_COUNT}
    assert max(seen) <= database.connection_count_max
    await database.close()

    # The server ends a session a moment after its client has left.
    async def none_is_left() -> bool:
        return await asyncio.to_thread(connection_count, url) == 0

    await wait_until(none_is_left, description="the server to have no session of it")


def plain(url: str) -> str:
    """The address as the driver itself takes it."""
    return url.replace("postgresql+psycopg://", "postgresql://")


def terminate(url: str, pid: int) -> None:
    """End a backend, as an administrator does."""
    with psycopg.connect(plain(url), autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", (pid,))


def connection_count(url: str) -> int:
    """Sessions of Threadmark in this database."""
    query = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'threadmark'"
    )
    with psycopg.connect(plain(url), autocommit=True) as connection:
        row = connection.execute(query).fetchone()
    return int(row[0]) if row else 0
