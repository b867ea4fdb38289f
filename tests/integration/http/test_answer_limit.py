"""How long an answer may take, and what becomes of its statements when nobody waits for it any more."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import httpx
import psycopg
import pytest
from litestar import get
from litestar.params import FromPath
from sqlalchemy import Connection, text

from tests.support.api import make_key
from tests.support.live_server import Live, serve_live
from tests.support.waiting import wait_until
from threadmark.app.access import Scope, needs
from threadmark.app.requests import dependencies
from threadmark.app.sse.live_response import LiveResponse, whole_or_cut

#: A statement that ends by itself when every test is over.
LONG_MS, SHORT_MS = 120_000, 400
LIMIT_S = 1.0
RUNNING = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep%'"


async def _sleep(resources: dependencies.Resources, ms: int) -> None:
    def query(connection: Connection) -> None:
        connection.execute(text("SELECT pg_sleep(:seconds)"), {"seconds": ms / 1000})

    await resources.database.read(query)


@get("/slow/{ms:int}/{count:int}", opt=needs(Scope.READ))
async def slow(ms: FromPath[int], count: FromPath[int], resources: dependencies.Resources) -> str:
    """An answer that takes so many statements."""
    for _ in range(count):
        await _sleep(resources, ms)
    return "done"


@get("/slow-parts/{ms:int}/{count:int}", opt=needs(Scope.READ))
async def slow_parts(ms: FromPath[int], count: FromPath[int], resources: dependencies.Resources) -> LiveResponse:
    """The same in parts, one for each statement."""

    async def parts() -> AsyncGenerator[bytes, None]:
        for _ in range(count):
            await _sleep(resources, ms)
            yield b"done "

    return whole_or_cut(resources, parts())


@pytest.fixture
async def live(request: pytest.FixtureRequest, postgres_url: str, tmp_path: Path) -> AsyncIterator[Live]:
    """A server over PostgreSQL, whose own limits end nothing."""
    environment = {
        "THREADMARK_STATE_DATABASE_URL": postgres_url,
        "THREADMARK_DATABASE_READ_S": "100",
        "THREADMARK_ANSWER_S": str(getattr(request, "param", 100.0)),
    }
    async with serve_live(tmp_path, routes=[slow, slow_parts], environment=environment) as live:
        yield live


@pytest.fixture
async def clients(live: Live) -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """Clients of two tenants."""
    keys = [await make_key(live.resources, Scope.READ, tenant_id=tenant) for tenant in ("a", "b")]
    one, other = (httpx.AsyncClient(base_url=live.url, headers={"x-api-key": key}, timeout=60) for key in keys)
    async with one, other:
        yield one, other


async def running(url: str, count: int) -> None:
    """Wait until so many statements run on the server."""
    async with await psycopg.AsyncConnection.connect(url.replace("+psycopg", ""), autocommit=True) as connection:

        async def is_so() -> bool:
            row = await (await connection.execute(RUNNING)).fetchone()
            return row == (count,)

        await wait_until(is_so, description=f"{count} statements", timeout_s=30)


async def test_a_statement_ends_on_the_server_when_its_client_hangs_up(
    postgres_url: str, clients: tuple[httpx.AsyncClient, httpx.AsyncClient]
) -> None:
    """Those that wait for a turn are not begun; a neighbour is answered meanwhile and on the same connections after."""
    one, other = clients
    asked = [asyncio.create_task(one.get(f"/slow/{LONG_MS}/1")) for _ in range(6)]
    await running(postgres_url, 2)
    assert (await other.get("/slow/1/1")).status_code == 200
    for each in asked:
        each.cancel()
    await asyncio.wait(asked)
    await running(postgres_url, 0)
    answers = await asyncio.gather(*(client.get("/slow/1/3") for client in clients for _ in range(8)))

    assert {answer.status_code for answer in answers} == {200}


@pytest.mark.parametrize("live", [LIMIT_S], indirect=True)
async def test_an_answer_has_a_limit_and_one_in_parts_has_it_for_each(
    postgres_url: str, clients: tuple[httpx.AsyncClient, httpx.AsyncClient]
) -> None:
    """One long statement, or many short ones together; nothing of it goes on, and nobody else is refused."""
    one, other = clients
    late, sum_is_late, parts, neighbour = await asyncio.gather(
        one.get(f"/slow/{LONG_MS}/1"),
        other.get(f"/slow/{SHORT_MS}/9"),
        other.get(f"/slow-parts/{SHORT_MS}/5"),
        other.get("/slow/1/1"),
    )
    await running(postgres_url, 0)

    for refused in (late, sum_is_late):
        assert (refused.status_code, refused.json()["code"]) == (503, "took_too_long")
        assert int(refused.headers["retry-after"]) >= 1
    assert (parts.status_code, parts.text) == (200, "done " * 5)
    assert neighbour.status_code == 200
