"""The servers tests are given are private, come back after a crash, and leave with the tests."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from tests.support.daemon import DidNotStart, unavailable
from tests.support.servers import PrivatePostgres, PrivateRedis
from tests.support.waiting import wait_until

ORPHAN = """
import sys
from tests.support.servers import PrivateRedis
with PrivateRedis() as server:
    print(server.port, flush=True)
    sys.stdin.read()
"""


def connect(url: str) -> psycopg.Connection:
    """A driver's connection to SQLAlchemy's address."""
    return psycopg.connect(url.replace("+psycopg", ""), autocommit=True)


def is_listening(port: int) -> bool:
    """Whether anybody accepts connections at a loopback port."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def setting(url: str, name: str) -> object:
    """The value of a PostgreSQL server setting."""
    with connect(url) as connection:
        row = connection.execute("SELECT current_setting(%s)", [name]).fetchone()
    assert row is not None
    return row[0]


def test_a_test_has_an_empty_database_of_its_own(private_postgres: PrivatePostgres, postgres_url: str) -> None:
    """Two databases of one server share nothing."""
    with connect(postgres_url) as connection:
        connection.execute("CREATE TABLE kept (id int)")

    with private_postgres.fresh_database() as other, connect(other) as connection:
        tables = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()

    assert tables == (0,)


def test_a_private_postgres_is_not_the_machines(private_postgres: PrivatePostgres, postgres_url: str) -> None:
    """Its port and its data are its own, and it does not run as root."""
    assert private_postgres.port != 5432
    assert setting(postgres_url, "data_directory") == str(private_postgres.folder / "data")
    assert os.stat(private_postgres.folder / "data").st_uid != 0


def test_what_was_committed_survives_a_crash(start_postgres: Callable[..., PrivatePostgres]) -> None:
    """After an immediate stop the server recovers on the same port, with every committed row."""
    server = start_postgres(fsync=True, settings={"max_connections": "7"})
    url, port = server.url(server.create_database()), server.port
    with connect(url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS id")

    server.restart("immediate")

    with connect(url) as connection:
        assert connection.execute("SELECT id FROM kept").fetchone() == (1,)
    assert (server.port, setting(url, "fsync"), setting(url, "max_connections")) == (port, "on", "7")


def test_a_shared_server_left_stopped_is_started_for_the_next_test(private_postgres: PrivatePostgres) -> None:
    """A test that stops the run's server takes nothing from the tests after it."""
    private_postgres.stop("immediate")

    with private_postgres.fresh_database() as url:
        assert setting(url, "fsync") == "off"


def test_a_server_that_cannot_start_says_why(start_postgres: Callable[..., PrivatePostgres]) -> None:
    """The refusal carries the server's own words."""
    with pytest.raises(DidNotStart, match="no_such_setting"):
        start_postgres(settings={"no_such_setting": "1"})


def test_a_killed_redis_comes_back_empty(private_redis: PrivateRedis) -> None:
    """Nothing is kept on disk: what a kill takes is gone, and the port stays."""
    port = private_redis.port
    with private_redis.client() as client:
        client.set("k", "v")

    private_redis.kill()
    with private_redis.client() as client, pytest.raises(RedisConnectionError):
        client.ping()

    private_redis.start()
    with private_redis.client() as client:
        assert client.dbsize() == 0
    assert private_redis.port == port != 6379


def test_each_test_finds_redis_empty(private_redis: PrivateRedis) -> None:
    """A flush forgets every key."""
    with private_redis.client() as client:
        client.set("k", "v")
        private_redis.flush()
        assert client.dbsize() == 0


def test_a_closed_server_leaves_nothing() -> None:
    """After the block neither the process, nor the port, nor the folder is there."""
    with PrivateRedis() as server:
        folder, port = server.folder, server.port

    assert not server.is_running()
    assert not is_listening(port)
    assert not folder.exists()


@pytest.fixture
def other_tests(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that, like a run of tests, holds a private server, and has printed its port."""
    command, scratch = [sys.executable, "-c", ORPHAN], os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=scratch) as process:
        yield process


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent died")
async def test_servers_die_with_the_tests(other_tests: subprocess.Popen[bytes]) -> None:
    """Tests that are killed leave no server behind."""
    assert other_tests.stdout is not None
    port = int(other_tests.stdout.readline())
    assert is_listening(port)

    other_tests.kill()

    await wait_until(lambda: not is_listening(port), description="the orphaned redis-server to end")


def test_a_missing_binary_fails_in_ci_and_skips_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody looks a skipped test is a hole, so CI fails instead."""
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="not installed"):
        unavailable("not installed")

    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="not installed"):
        unavailable("not installed")
