"""A server on a real socket: limits while bytes arrive, and a stop that waits for no client too long."""

import asyncio
import contextlib
import itertools
import os
import select
import signal
import socket
import struct
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from litestar import get, post
from litestar.params import JSONBody
from litestar.response import Stream

from tests.support.live_server import Live, serve_live
from tests.support.waiting import wait_until
from threadmark.app.access import Scope, Token, needs
from threadmark.app.access.gate import FAILURES_PER_SOURCE
from threadmark.app.edge.drain import DRAIN_BYTES_MAX
from threadmark.app.requests import dependencies
from threadmark.app.server import GRACE_S, CannotListen, listen, url_of

LIMIT = 4_096
SENT_BYTES_MAX = 64 * 2**20


@post("/echo", opt=needs(Scope.RUN), sync_to_thread=False)
def echo(data: JSONBody[dict[str, Any]]) -> int:
    """Tell how many members came."""
    return len(data)


@get("/stream", opt=needs(Scope.READ), sync_to_thread=False)
def stream(resources: dependencies.Resources) -> Stream:
    """Continue until the server is stopped."""

    async def chunks() -> AsyncIterator[bytes]:
        yield b"begun"
        await resources.stopping.wait()
        yield b" ended"

    return Stream(chunks())


@get("/stuck", opt=needs(Scope.READ), sync_to_thread=False)
def stuck() -> Stream:
    """Continue for ever, also through a stop."""

    async def chunks() -> AsyncIterator[bytes]:
        yield b"begun"
        await asyncio.Event().wait()

    return Stream(chunks())


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[Live]:
    """A server with the routes above and a small limit."""
    environment = {"THREADMARK_BODY_BYTES_MAX": str(LIMIT)}
    async with serve_live(tmp_path, routes=[echo, stream, stuck], environment=environment) as live:
        yield live


def send_raw(live: Live, head: Iterable[str], body: Iterable[bytes] = ()) -> tuple[bytes, int]:
    """The raw answer to a raw request, and how many bytes of the body were sent before it began to come."""
    place = urlsplit(live.url)
    sent, answer = 0, b""
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=30) as connection:
        connection.sendall("\r\n".join([*head, "", ""]).encode("latin-1"))
        with contextlib.suppress(ConnectionError):
            for chunk in body:
                if select.select([connection], [], [], 0)[0]:
                    break
                connection.sendall(chunk)
                sent += len(chunk)
        with contextlib.suppress(ConnectionError):
            while received := connection.recv(65_536):
                answer += received
    return answer, sent


async def exchange(live: Live, head: Iterable[str], body: Iterable[bytes] = ()) -> tuple[bytes, int]:
    """`send_raw`, beside the server that runs in this event loop."""
    return await asyncio.to_thread(send_raw, live, head, body)


async def test_a_chunked_body_is_given_up_at_the_limit(live: Live) -> None:
    """Nobody announces its size; it is counted while it is read, and its sender stopped long before its end."""

    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    async with await live.http(Scope.RUN) as client:
        key = client.headers["x-api-key"]
        head = ["POST /echo HTTP/1.1", "host: localhost", f"x-api-key: {key}", "transfer-encoding: chunked"]
        answer, sent = await exchange(live, head, itertools.repeat(chunk, SENT_BYTES_MAX // len(chunk)))

    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b'"body_too_large"' in answer
    assert b"connection: close" in answer
    assert sent < SENT_BYTES_MAX // 2


async def test_a_chunked_body_within_the_limit_is_taken(live: Live) -> None:
    """Chunks as such are fine."""

    async def chunks() -> AsyncIterator[bytes]:
        yield b'{"a": '
        yield b"1}"

    async with await live.http(Scope.RUN) as client:
        response = await client.post("/echo", content=chunks())

    assert (response.status_code, response.text) == (201, "1")


async def test_an_announced_length_over_the_limit_is_refused_before_a_byte_is_read(live: Live) -> None:
    """The head is enough."""
    async with await live.http(Scope.RUN) as client:
        key = client.headers["x-api-key"]
        head = ["POST /echo HTTP/1.1", "host: localhost", f"x-api-key: {key}", f"content-length: {10 * LIMIT}"]
        answer, sent = await exchange(live, head)

    assert (answer[:12], sent) == (b"HTTP/1.1 413", 0)


async def test_a_strangers_body_is_not_read(live: Live) -> None:
    """Without a key the answer comes before the body does."""
    answer, sent = await exchange(live, ["POST /echo HTTP/1.1", "host: localhost", f"content-length: {LIMIT}"])

    assert (answer[:12], sent) == (b"HTTP/1.1 401", 0)


@pytest.mark.parametrize("size", [2 * LIMIT, 100 * LIMIT, DRAIN_BYTES_MAX])
async def test_a_client_that_sends_first_and_reads_later_sees_its_refusal(live: Live, size: int) -> None:
    """A refused body of reasonable size is read to its end, so ordinary clients get their answer."""
    async with await live.http(Scope.RUN) as client:
        response = await client.post("/echo", content=b"x" * size)

    assert (response.status_code, response.json()["code"]) == (413, "body_too_large")


@pytest.mark.parametrize(
    "head",
    [
        ["GET /ok HTTP/1.1"],
        ["GET /ok HTTP/1.1", "host: a", "host: b"],
        ["GET /ok HTTP/1.1", "host: localhost", "x\x00y: z"],
        ["GET /ok HTTP/1.1", "host: localhost", "content-length: 1", "content-length: 2"],
        ["GET /ok HTTP/1.1", "host: localhost", "content-length: x"],
        ["GET /ok HTTP/1.1", "host: localhost", "x: " + "y" * 200_000],
        ["\x16\x03\x01\r\n"],
    ],
)
async def test_a_broken_request_is_refused_and_the_server_stays(live: Live, head: list[str]) -> None:
    """What is not HTTP gets a 4xx or a closed connection, and the next request is answered."""
    answer, _ = await exchange(live, head)

    assert answer[:10] in (b"", b"HTTP/1.1 4")
    async with await live.http(Scope.READ) as client:
        assert (await client.get("/info")).status_code == 200


async def test_a_client_that_breaks_off_its_body_leaves_nothing(live: Live) -> None:
    """A reset in the middle of a body ends the request; the server counts it as over."""
    async with await live.http(Scope.RUN, Scope.ADMIN) as client:
        place = urlsplit(live.url)
        gone = socket.create_connection((place.hostname or "", place.port or 0))
        key = client.headers["x-api-key"]
        gone.sendall(f"POST /echo HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\ncontent-length: 99\r\n\r\n{{".encode())
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        gone.close()

        async def over() -> bool:
            text = (await client.get("/metrics")).text
            return 'route="/echo",status="400"' in text and "threadmark_http_requests_open 1.0" in text

        assert await wait_until(over, description="the request to be over")


async def test_the_servers_name_is_not_revealed(live: Live) -> None:
    """Responses do not reveal the server's software."""
    async with httpx.AsyncClient(base_url=live.url) as client:
        headers = (await client.get("/ok")).headers

    assert "server" not in headers
    assert len(headers.get_list("x-request-id")) == 1


async def test_a_signal_ends_the_streams_that_listen_for_it(live: Live) -> None:
    """SIGTERM: open streams are asked to end and do so completely, and the server exits cleanly."""
    async with await live.http(Scope.READ) as client, client.stream("GET", "/stream") as response:
        body = response.aiter_raw()
        assert await anext(body) == b"begun"

        os.kill(os.getpid(), signal.SIGTERM)

        assert [chunk async for chunk in body] == [b" ended"]
    await asyncio.wait_for(live.serving, 30)
    assert live.serving.exception() is None


async def test_a_signal_does_not_wait_for_ever(live: Live) -> None:
    """A stream that does not listen is cut off after its grace, which is seconds."""
    async with await live.http(Scope.READ) as client, client.stream("GET", "/stuck") as response:
        body = response.aiter_raw()
        assert await anext(body) == b"begun"

        os.kill(os.getpid(), signal.SIGTERM)

        with pytest.raises(httpx.RemoteProtocolError):
            await anext(body)
    await asyncio.wait_for(live.serving, 30)
    assert GRACE_S <= 5


async def test_a_second_signal_does_not_wait_at_all(live: Live) -> None:
    """A second signal ends the server at once."""
    async with await live.http(Scope.READ) as client, client.stream("GET", "/stuck") as response:
        assert await anext(response.aiter_raw()) == b"begun"
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(live.resources.stopping.wait(), 30)
        os.kill(os.getpid(), signal.SIGINT)

        await wait_until(lambda: live.server.force_exit, description="the second signal to be handled")


async def test_a_port_is_taken_once() -> None:
    """The second listener is refused at once, with the port, before either has begun to serve."""
    with listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]

        with pytest.raises(CannotListen, match=f"port {port} of 127.0.0.1 is taken") as refused:
            listen("127.0.0.1", port)

    assert f"PORT={port + 1}" in str(refused.value)


@pytest.mark.parametrize(
    ("host", "says"),
    [("192.0.2.1", "no address of this machine"), ("no-such-host.invalid", "no name known here")],
)
async def test_an_address_that_is_not_ours_is_refused(host: str, says: str) -> None:
    """The sentence names HOST and gives one that works."""
    with pytest.raises(CannotListen, match=says) as refused:
        listen(host, 8123)

    assert str(refused.value).startswith(f"HOST is {host!r}")
    assert "HOST=127.0.0.1" in str(refused.value)


async def test_the_printed_address_is_one_to_call() -> None:
    """A server on all addresses prints one of this machine."""
    with listen("0.0.0.0", 0) as everywhere:
        assert url_of(everywhere) == f"http://127.0.0.1:{everywhere.getsockname()[1]}"


async def test_a_trusted_proxy_names_requests_and_clients(tmp_path: Path) -> None:
    """What the proxy of the operator says is believed: the request's id, and whose wrong keys they are."""
    async with (
        serve_live(tmp_path, environment={"THREADMARK_TRUSTED_PROXIES": "127.0.0.0/8"}, monotonic=lambda: 0.0) as live,
        httpx.AsyncClient(base_url=live.url, timeout=30) as client,
    ):
        named = await client.get("/ok", headers={"x-request-id": "from-the-proxy.1"})
        misnamed = await client.get("/ok", headers={"x-request-id": "two words"})

        async def guess(source: str) -> int:
            headers = {"x-api-key": Token.fresh().text, "x-forwarded-for": f"10.9.9.9, {source}"}
            return (await client.get("/info", headers=headers)).status_code

        guesses = [await guess("192.0.2.1") for _ in range(FAILURES_PER_SOURCE + 1)]
        neighbour = await guess("192.0.2.2")

    assert named.headers["x-request-id"] == "from-the-proxy.1"
    assert " " not in misnamed.headers["x-request-id"]
    assert (guesses[0], guesses[-1], neighbour) == (401, 429, 401)


async def test_a_client_cannot_hide_behind_an_invented_proxy(tmp_path: Path) -> None:
    """Without trusted proxies the header counts for nothing: one source, however many addresses it invents."""
    async with (
        serve_live(tmp_path, monotonic=lambda: 0.0) as live,
        httpx.AsyncClient(base_url=live.url, timeout=30) as client,
    ):

        async def guess(number: int) -> int:
            headers = {"x-api-key": Token.fresh().text, "x-forwarded-for": f"192.0.2.{number}"}
            return (await client.get("/info", headers=headers)).status_code

        statuses = [await guess(number) for number in range(FAILURES_PER_SOURCE + 1)]

    assert (statuses[0], statuses[-1]) == (401, 429)
