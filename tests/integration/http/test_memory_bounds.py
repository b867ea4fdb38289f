"""Bounds of what a tenant has open of memory: erasures, imports, exports, and answers that nobody reads."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from litestar import get
from litestar.response import Stream

from tests.integration.http.test_bounds import refused
from tests.support.api import make_key, open_api
from tests.support.live_server import Live, serve_live
from tests.support.waiting import wait_until
from threadmark.app.access import Scope, needs
from threadmark.app.edge.http1 import HttpProtocol
from threadmark.app.routes.memories import memory_archive
from threadmark.memory import Erasure, Recollection, SpooledLines

LONG_S = 30.0
PART = b"x" * 2**16
EXPORT = "/memories/export?namespace=[]"
IMPORT = "/memories/import?namespace=[]"
ENVIRONMENT = {"THREADMARK_MEMORY_IMPORTS_MAX": "1", "THREADMARK_MEMORY_EXPORTS_MAX": "1"}


async def test_erasures_that_are_not_done_have_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is refused is not begun; a dry run and a repeated request are answered, a neighbour too, and an end makes
    room."""
    perform = Recollection.resume_erasure

    async def put_off(self: Recollection, erasure_id: str, *, tenant_id: str, now: object) -> Erasure:
        return await self.erasure(erasure_id, tenant_id=tenant_id)

    async with open_api(tmp_path, environment={"THREADMARK_MEMORY_ERASURES_MAX": "2"}) as api:
        keys = {name: await api.key(Scope.ADMIN, tenant_id=name) for name in ("a", "b")}
        monkeypatch.setattr(Recollection, "resume_erasure", put_off)

        async def erase(name: str, key: str, *, dry_run: bool = False) -> httpx.Response:
            body = {"subject": "Ada", "dry_run": dry_run}
            headers = {"idempotency-key": key}
            answer: httpx.Response = await api.call("POST", "/memories/erase", keys[name], json=body, headers=headers)
            return answer

        begun = [await erase("a", each) for each in ("1", "2")]
        assert [each.json()["status"] for each in begun] == ["running", "running"]
        assert refused(await erase("a", "3"), "memory_erasures")
        assert (await erase("a", "2")).content == begun[1].content
        assert (await erase("a", "4", dry_run=True)).status_code == 200
        assert (await erase("b", "1")).status_code == 200

        monkeypatch.setattr(Recollection, "resume_erasure", perform)
        await api.resources.wired.recollection.resume_erasures(now=api.resources.now())

        assert (await erase("a", "3")).json()["status"] == "done"


class Endless(SpooledLines):
    """An export that has no end."""

    def read(self, count: int) -> bytes:
        """More of it."""
        return PART[:count]


@pytest.fixture
async def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Live]:
    """A server with room for one of each, whose clients have little time to read."""

    async def parts() -> AsyncIterator[bytes]:
        while True:
            # A body that never lets go of the loop would be written for ever to a client that has gone.
            await asyncio.sleep(0)
            yield PART

    @get("/endless", opt=needs(Scope.READ))
    async def endless() -> Stream:
        """An answer that has no end."""
        return Stream(parts())

    monkeypatch.setattr(HttpProtocol, "unread_s", 1.0)
    monkeypatch.setattr(HttpProtocol, "tick_s", 0.05)
    async with serve_live(tmp_path, routes=[endless], environment=ENVIRONMENT) as live:
        yield live


@pytest.fixture
async def tenants(live: Live) -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """Clients of two tenants."""
    async with AsyncExitStack() as stack:
        made = []
        for name in ("a", "b"):
            headers = {"x-api-key": await make_key(live.resources, Scope.ADMIN, tenant_id=name)}
            client = httpx.AsyncClient(base_url=live.url, headers=headers, timeout=LONG_S)
            made.append(await stack.enter_async_context(client))
        yield made[0], made[1]


async def reader_of(live: Live, path: str, tenant_id: str) -> socket.socket:
    """A connection on which an answer has been asked for and nothing is read; it has little room of its own."""
    key = await make_key(live.resources, Scope.ADMIN, tenant_id=tenant_id)
    at = urlsplit(live.url)
    loop = asyncio.get_running_loop()
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    connection.setblocking(False)
    await loop.sock_connect(connection, (at.hostname, at.port))
    request = f"GET {path} HTTP/1.1\r\nhost: {at.netloc}\r\nx-api-key: {key}\r\n\r\n"
    await loop.sock_sendall(connection, request.encode())
    return connection


async def test_an_export_that_nobody_reads_makes_room(
    live: Live, tenants: tuple[httpx.AsyncClient, httpx.AsyncClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is open a second is refused, of its tenant alone; after its time it is broken off."""
    a, b = tenants
    with monkeypatch.context() as patched:
        patched.setattr(memory_archive, "SpooledLines", Endless)
        with await reader_of(live, EXPORT, "a"):

            async def is_open() -> bool:
                return bool(live.resources.exports._taken["a"])

            await wait_until(is_open, description="the export to be open")
            patched.undo()
            assert refused(await a.get(EXPORT), "memory_exports")
            assert (await b.get(EXPORT)).status_code == 200

            async def has_room() -> bool:
                return (await a.get(EXPORT)).status_code == 200

            await wait_until(has_room, description="room for another export")
    assert not live.resources.exports._taken


async def test_one_who_reads_little_at_a_time_is_not_broken_off(live: Live) -> None:
    """For several times as long as one who reads nothing; then it stops reading, and is."""
    loop = asyncio.get_running_loop()
    with await reader_of(live, "/endless", "a") as reading:
        until = loop.time() + 4 * HttpProtocol.unread_s
        while loop.time() < until:
            assert await loop.sock_recv(reading, 1_024)
            await asyncio.sleep(0.02)

        assert live.server.server_state.connections

        await wait_until(lambda: _is_alone(live), description="the connection to be broken off")


async def _is_alone(live: Live) -> bool:
    return not live.server.server_state.connections


async def test_imports_have_a_bound(live: Live, tenants: tuple[httpx.AsyncClient, httpx.AsyncClient]) -> None:
    """From the first byte of the body; a second is refused, of its tenant alone, and who ends makes room."""
    a, b = tenants
    export = (await a.get(EXPORT)).content
    has_begun, go_on = asyncio.Event(), asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield export[:1]
        has_begun.set()
        await go_on.wait()
        yield export[1:]

    first = asyncio.create_task(a.post(IMPORT, content=slowly()))
    await has_begun.wait()

    async def is_open() -> bool:
        return bool(live.resources.imports._taken["a"])

    await wait_until(is_open, description="the import to be open")

    assert refused(await a.post(IMPORT, content=export), "memory_imports")
    theirs = (await b.get(EXPORT)).content
    assert (await b.post(IMPORT, content=theirs)).status_code == 200
    go_on.set()
    assert (await first).status_code == 200
    assert (await a.post(IMPORT, content=export)).status_code == 200
