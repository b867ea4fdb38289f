"""PostgreSQL that is reached and does not answer: nothing waits for it without end, and it is found again."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, make_url, text

from tests.support.api import open_api
from tests.support.silent_proxy import SilentProxy
from tests.support.waiting import wait_until
from threadmark.app.access import Scope
from threadmark.db import Condition, Limits
from threadmark.memory import Database as MemoryDatabase
from threadmark.memory import Unavailable
from threadmark.state import Database, DatabaseAway, OutcomeUnknown, migrate, open_engine
from threadmark.workers.fleet.lease import Lease, WriterStalled

#: Short, so that the tests are; the order of the limits is that of the defaults.
LIMITS = Limits(turn_write_s=1.5, write_s=1.5, read_s=1.5, lease_s=1.5, liveness_s=1.5, request_s=6.0, connect_s=2)
ENVIRONMENT = {
    f"THREADMARK_DATABASE_{name.upper()}_S": "1" for name in ("turn_write", "write", "read", "lease", "liveness")
} | {"THREADMARK_DATABASE_CONNECT_S": "2", "THREADMARK_DATABASE_REQUEST_S": "3"}
#: A test that waits longer waits without end.
END_S = 90.0
NOTES = "CREATE TABLE note (name text PRIMARY KEY, count bigint NOT NULL DEFAULT 0)"


@pytest.fixture
def url(postgres_url: str) -> str:
    """A database with a note in it."""
    engine = open_engine(postgres_url, write=True)
    migrate(engine)
    with engine.begin() as connection:
        connection.execute(text(NOTES))
        connection.execute(text("INSERT INTO note (name) VALUES ('one')"))
    engine.dispose()
    return postgres_url


@pytest.fixture
def proxy(url: str) -> Iterator[SilentProxy]:
    """Between the test and the server."""
    with SilentProxy(make_url(url).port or 0) as proxy:
        yield proxy


@pytest.fixture
def through(url: str, proxy: SilentProxy) -> str:
    """The same database, through the proxy."""
    return make_url(url).set(port=proxy.port).render_as_string(hide_password=False)


def count_up(connection: Connection) -> int:
    """Count the note up; the number of the session that did it."""
    connection.execute(text("UPDATE note SET count = count + 1"))
    return int(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())


def count(connection: Connection) -> int:
    """What the note counts."""
    return int(connection.execute(text("SELECT count FROM note")).scalar_one())


async def persistently(ask: Callable[[], Awaitable[int]]) -> int:
    """The answer, asked for again while nothing is done.

    A connection may have been on its way to the silent server, or a loaded machine exceeds the short limits.
    """
    async with asyncio.timeout(END_S):
        while True:
            with contextlib.suppress(DatabaseAway, Unavailable):
                return await ask()


async def test_a_server_that_falls_silent_is_given_up_and_found_again(through: str, proxy: SilentProxy) -> None:
    """Reads and writes of both databases end with a refusal, those that queue too, and work again afterwards."""
    database, memory = Database.open(through, limits=LIMITS), MemoryDatabase.open(through, LIMITS)
    await persistently(lambda: database.write(count_up))
    await persistently(lambda: memory.write(count_up))
    before = await persistently(lambda: database.read(count))
    assert before == await persistently(lambda: memory.read(count)) >= 2

    proxy.fall_silent()
    async with asyncio.timeout(END_S):
        refused = await asyncio.gather(
            *(database.write(count_up, thread=thread) for thread in (None, 1, None, 1)),
            *(database.read(count) for _ in range(12)),
            *(memory.write(count_up) for _ in range(3)),
            *(memory.read(count) for _ in range(12)),
            return_exceptions=True,
        )
    assert {type(each) for each in refused} <= {DatabaseAway, Unavailable, OutcomeUnknown}
    conditions = [database.condition]

    proxy.speak()
    before = await persistently(lambda: database.read(count))
    await persistently(lambda: database.write(count_up))
    await persistently(lambda: memory.write(count_up))
    assert await database.read(count) == before + 2
    assert [*conditions, database.condition] == [Condition.AWAY, None]
    await database.close()
    await memory.close()


async def test_a_session_that_is_stopped_costs_one_attempt(url: str) -> None:
    """Its process is frozen before the next write, which another session does, once; a reader does the same."""
    database, memory = Database.open(url, limits=LIMITS), MemoryDatabase.open(url, LIMITS)
    frozen = [await persistently(partial(each.write, count_up)) for each in (database, memory)]
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    try:
        async with asyncio.timeout(END_S):
            again = [await each.write(count_up) for each in (database, memory)]
    finally:
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)

    assert set(frozen).isdisjoint(again)
    assert await database.read(count) == 4
    await database.close()
    await memory.close()


async def test_requests_end_with_503_while_nothing_answers(through: str, proxy: SilentProxy, tmp_path: Path) -> None:
    """With Retry-After, `/ready` with the reason; afterwards all is as before, without a restart."""
    environment = {
        **ENVIRONMENT,
        "THREADMARK_STATE_DATABASE_URL": through,
        "THREADMARK_MEMORY_DATABASE_URL": f"sqlite:///{tmp_path / 'memory.db'}",
    }
    async with open_api(tmp_path, environment=environment) as api:
        admin = await api.key(Scope.ADMIN)
        assert (await api.call("GET", "/ready")).status_code == 200
        thread = (await api.call("POST", "/threads", admin, json={})).json()["thread_id"]

        async def unready() -> Any:
            answer = await api.call("GET", "/ready")
            return None if answer.status_code == 200 else answer

        proxy.fall_silent()
        async with asyncio.timeout(END_S):
            answers = await asyncio.gather(
                api.call("POST", "/threads", admin, json={}),
                api.call("GET", f"/threads/{thread}", admin),
                api.call("GET", f"/threads/{thread}/history", admin),
            )
            ready = await wait_until(unready, description="the probe of a second to be made again", timeout_s=END_S)
        proxy.speak()

        async def is_ready() -> bool:
            return bool((await api.call("GET", "/ready")).status_code == 200)

        await wait_until(is_ready, description="the server to be ready again", timeout_s=END_S)
        assert [each.status_code for each in answers] == [503] * 3
        assert {each.json()["code"] for each in answers} <= {"database_away", "outcome_unknown"}
        waits = [each.headers.get("retry-after", "") for each in (*answers, ready)]
        assert all(each.isdigit() for each in waits), waits
        assert (ready.status_code, ready.json()["reasons"]) == (503, ["the state database does not answer"])
        assert (await api.call("GET", f"/threads/{thread}", admin)).status_code == 200


class Alive:
    """A sign of life that costs nothing."""

    def hold(self, worker_id: str) -> None:
        """Nothing to hold."""

    def refresh(self, worker_id: str) -> None:
        """Nothing to refresh."""

    def release(self, worker_id: str) -> None:
        """Nothing to release."""

    def is_lost(self) -> bool:
        """Never."""
        return False

    def is_unsure(self) -> bool:
        """Never."""
        return False

    def dead(self) -> list[str]:
        """Nobody."""
        return []

    def forget(self, worker_id: str) -> None:
        """Nothing to forget."""

    def beat(self, worker_id: str, until_s: float) -> bool:
        """Nobody looks."""
        return False

    def beating(self, worker_ids: Iterable[str]) -> list[str]:
        """Nobody."""
        return []


async def test_a_worker_whose_writer_hangs_lets_its_lease_end(url: str, through: str, proxy: SilentProxy) -> None:
    """The lease has a connection that works, and is left to end all the same: others can write for these runs."""
    database = Database.open(through, limits=LIMITS)
    engine = open_engine(url, write=True)
    lease = Lease(engine, Alive(), "w1", ttl_s=3.0, heartbeat_s=0.2, stalled_s=lambda: database.turns_stalled_s)
    await persistently(lambda: database.write(count_up, thread=1))
    await asyncio.to_thread(lease.begin, "{}", lambda: None)
    await asyncio.gather(*(database.write(count_up, thread=1) for _ in range(3)), return_exceptions=True)
    await wait_until(lambda: lease.is_safe, description="the lease to be safe", timeout_s=END_S)

    proxy.fall_silent()
    refused = [await asyncio.gather(database.write(count_up, thread=1), return_exceptions=True) for _ in range(2)]
    await wait_until(lambda: not lease.is_safe, description="the lease to be left alone", timeout_s=END_S)
    with pytest.raises(WriterStalled, match="could be written"):
        lease._renew()
    with psycopg.connect(url.replace("+psycopg", "")) as other:
        row = other.execute("SELECT lease_until FROM worker WHERE worker_id = 'w1'").fetchone()
    proxy.speak()
    # No write of a turn comes: a worker without a lease claims none. The writer finds out by itself.
    await wait_until(lambda: lease.is_safe, description="the lease to be renewed", timeout_s=END_S)

    assert all(isinstance(each, DatabaseAway | OutcomeUnknown) for (each,) in refused)
    assert row is not None
    await asyncio.to_thread(lease.end)
    engine.dispose()
    await database.close()
