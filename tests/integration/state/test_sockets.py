"""Every connection to PostgreSQL has the time-outs that the settings say, in the kernel and on the server."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import event, make_url, text
from sqlalchemy.pool import Pool

from tests.support.servers import PrivatePostgres
from threadmark.app.commands.common import open_memory_database, open_state_database
from threadmark.app.schema import migrate_all
from threadmark.memory import Scope
from threadmark.memory.exports.spooled_lines import SpooledLines
from threadmark.workers.settings.settings import Settings
from threadmark.workers.wiring import open_resources

TENANT = "t1"
STATEMENT_TIMEOUT = "SELECT setting::bigint FROM pg_settings WHERE name = 'statement_timeout'"
#: No two purposes have the same limit, so a limit names the purpose.
CHANGED_S = {
    "TURN_WRITE": 21.0,
    "WRITE": 22.0,
    "READ": 23.0,
    "LEASE": 24.5,
    "LIVENESS": 25.0,
    "MIGRATION": 26.0,
    "MAINTENANCE": 27.0,
    "KEEPALIVE": 30.0,
    "UNACKNOWLEDGED": 12.5,
}
DEFAULT_S = {
    "TURN_WRITE": 8.0,
    "WRITE": 10.0,
    "READ": 10.0,
    "LEASE": 3.0,
    "LIVENESS": 2.0,
    "MIGRATION": 3600.0,
    "MAINTENANCE": 600.0,
    "KEEPALIVE": 6.0,
    "UNACKNOWLEDGED": 8.0,
}


class Kernel(NamedTuple):
    """Options of a socket, as the kernel has them."""

    is_kept_alive: bool
    idle_s: int
    interval_s: int
    probe_count: int
    unacknowledged_ms: int


class Seen:
    """The connections that were taken from any pool: of which database, with which limits."""

    def __init__(self) -> None:
        self.kernels: set[Kernel] = set()
        self._limits_ms: set[tuple[str, int]] = set()

    def checkout(self, connection: Any, _record: Any, _proxy: Any) -> None:
        """Look at a connection, in the thread that is about to use it."""
        with socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as its:
            self.kernels.add(
                Kernel(
                    its.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1,
                    its.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
                    its.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL),
                    its.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT),
                    its.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT),
                )
            )
        limit_ms = connection.execute(STATEMENT_TIMEOUT).fetchone()[0]
        connection.rollback()
        self._limits_ms.add((connection.info.dbname, limit_ms))

    def take_limits_s(self, url: str) -> set[float]:
        """The limits of statements that connections to this database had since the last call, in seconds."""
        database = make_url(url).database
        found = {each for each in self._limits_ms if each[0] == database}
        self._limits_ms -= found
        return {limit_ms / 1_000 for _, limit_ms in found}


@pytest.fixture
def seen() -> Iterator[Seen]:
    """What is seen of the connections of this test."""
    seen = Seen()
    event.listen(Pool, "checkout", seen.checkout)
    yield seen
    event.remove(Pool, "checkout", seen.checkout)


@pytest.fixture
def memory_url(private_postgres: PrivatePostgres) -> Iterator[str]:
    """An empty database for memory."""
    with private_postgres.fresh_database() as url:
        yield url


@pytest.mark.parametrize(
    ("changed", "limits_s", "kernel"),
    [
        ({}, DEFAULT_S, Kernel(True, 6, 2, 3, 8_000)),
        (CHANGED_S, CHANGED_S, Kernel(True, 30, 10, 3, 12_500)),
    ],
    ids=["by default", "as changed"],
)
async def test_every_connection_has_the_time_outs_of_the_settings(
    changed: dict[str, float],
    limits_s: dict[str, float],
    kernel: Kernel,
    seen: Seen,
    postgres_url: str,
    memory_url: str,
    tmp_path: Path,
) -> None:
    """Of migrations, a process with a worker, an export, and commands: keepalive, `tcp_user_timeout`, statements."""
    settings = Settings.from_environment(
        {
            "THREADMARK_DATA_DIR": str(tmp_path),
            "THREADMARK_STATE_DATABASE_URL": postgres_url,
            "THREADMARK_MEMORY_DATABASE_URL": memory_url,
            **{f"THREADMARK_DATABASE_{name}_S": f"{value:g}" for name, value in changed.items()},
        }
    )

    def those_of(*purposes: str) -> set[float]:
        return {limits_s[purpose] for purpose in purposes}

    migrate_all(settings)
    assert seen.take_limits_s(postgres_url) == those_of("MIGRATION")
    assert seen.take_limits_s(memory_url) == those_of("MIGRATION")

    async with open_resources(settings, with_worker=True) as resources:
        for thread in (None, 1):
            await resources.database.write(lambda connection: connection.execute(text("SELECT 1")).all(), thread=thread)
        await resources.database.read(lambda connection: connection.execute(text("SELECT 1")).all())
        await resources.recollection.sweep(now=resources.now(), recalls_before=resources.now())
    assert seen.take_limits_s(postgres_url) == those_of("TURN_WRITE", "WRITE", "READ", "LEASE", "LIVENESS")
    assert seen.take_limits_s(memory_url) == those_of("WRITE", "READ", "LIVENESS")

    async with open_resources(settings, with_worker=False) as resources:
        with SpooledLines() as spool:
            await resources.recollection.export_to(spool, scope=Scope(tenant_id=TENANT, namespace=()))
    assert seen.take_limits_s(postgres_url) <= those_of("WRITE", "READ", "LEASE")
    assert seen.take_limits_s(memory_url) == those_of("WRITE", "READ", "LIVENESS")

    async with open_state_database(settings) as state, open_memory_database(settings) as memory:
        for database in (state, memory):
            await database.write(lambda connection: connection.execute(text("SELECT 1")).all())
            await database.read(lambda connection: connection.execute(text("SELECT 1")).all())
    # A look at the revisions reads, as any process does.
    for url in (postgres_url, memory_url):
        assert seen.take_limits_s(url) == those_of("MAINTENANCE", "READ")

    assert seen.kernels == {kernel}
