"""The connection itself: halves are given up, ambiguous requests refused, and a client that has gone is noticed."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from litestar import get, post
from litestar.params import JSONBody

from tests.support.api import make_key
from tests.support.live_server import Live, serve_live
from tests.support.waiting import wait_until
from threadmark.app.access import Scope, needs
from threadmark.app.edge.http1 import HttpProtocol
from threadmark.app.edge.shield import SECURITY_HEADERS
from threadmark.app.requests import dependencies
from threadmark.app.sse.live_response import LiveResponse, whole_or_cut

LONG_S = 30.0


class Handler:
    """What a handler went through."""

    def __init__(self) -> None:
        self.begun, self.cancelled, self.may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()


@pytest.fixture
def handler() -> Handler:
    """The handler of `/long`, `/written` and `/parts`."""
    return Handler()


@pytest.fixture
async def live(tmp_path: Path, handler: Handler, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Live]:
    """A server whose clients have little time."""

    async def wait() -> None:
        handler.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            handler.cancelled.set()
            raise

    @get("/long", opt=needs(Scope.READ))
    async def long() -> None:
        """A read that takes for ever."""
        await wait()

    @post("/looked-up", opt=needs(Scope.READ))
    async def looked_up(data: JSONBody[dict[str, int]]) -> None:
        """A read with a body that takes for ever."""
        await wait()

    @post("/written", opt=needs(Scope.RUN))
    async def written(data: JSONBody[dict[str, int]]) -> dict[str, int]:
        """A write."""
        return data

    @get("/parts", opt=needs(Scope.READ))
    async def parts(resources: dependencies.Resources) -> LiveResponse:
        """An answer in two slices, the second when the test says so."""

        async def chunks() -> AsyncGenerator[bytes, None]:
            yield b"first"
            await handler.may_end.wait()
            yield b"second"

        return whole_or_cut(resources, chunks())

    for name in ("head_s", "idle_s", "body_s", "tick_s"):
        monkeypatch.setattr(HttpProtocol, name, 0.2)
    monkeypatch.setattr(HttpProtocol, "bytes_per_s", 1_000_000)
    async with serve_live(tmp_path, routes=[long, looked_up, written, parts]) as live:
        yield live


async def _connect(live: Live) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    place = urlsplit(live.url)
    return await asyncio.open_connection(place.hostname, place.port)


async def _exchange(live: Live, *sent: bytes) -> bytes:
    """Everything that the server says until it closes."""
    reader, writer = await _connect(live)
    for each in sent:
        writer.write(each)
        await writer.drain()
    async with asyncio.timeout(LONG_S):
        answer = await reader.read()
    writer.close()
    return answer


def _refusal(answer: bytes) -> tuple[int, str]:
    """Status and code of a refusal that has the one shape of all refusals."""
    head, _, body = answer.partition(b"\r\n\r\n")
    headers = {name.lower(): value for name, value in re.findall(r"([\w-]+): (.*?)\r?\n", head.decode() + "\n")}
    refusal = json.loads(body)
    assert headers["content-type"] == "application/json"
    assert headers["x-request-id"] == refusal["request_id"]
    assert headers["connection"] == "close"
    assert all(headers[name] == value for name, value in SECURITY_HEADERS)
    return int(head.split()[1]), str(refusal["code"])


async def test_a_head_that_does_not_arrive_is_given_up(live: Live) -> None:
    """A client that opens a thousand connections and sends half a request on each holds none of them for long."""
    assert _refusal(await _exchange(live, b"GET /ok HTTP/1.1\r\nhost: loc")) == (408, "request_timeout")


async def test_a_connection_on_which_nothing_comes_is_closed(live: Live) -> None:
    """Without a word, as nothing was asked."""
    assert await _exchange(live) == b""


async def test_a_body_that_does_not_arrive_is_given_up(live: Live) -> None:
    """The head has announced it; half of it is all that comes."""
    key = (await live.http(Scope.RUN)).headers["x-api-key"]
    head = f"POST /written HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\ncontent-length: 100\r\n\r\n"

    assert _refusal(await _exchange(live, head.encode(), b'{"half":')) == (408, "request_timeout")


async def test_a_body_that_drips_is_given_up(live: Live) -> None:
    """A byte now and then is no reason to hold a connection for ever."""
    key = (await live.http(Scope.RUN)).headers["x-api-key"]
    reader, writer = await _connect(live)
    head = f"POST /written HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\ncontent-length: 1000000\r\n\r\n"
    writer.write(head.encode())

    async def drip() -> None:
        while not writer.is_closing():
            writer.write(b" ")
            await asyncio.sleep(0.02)

    dripping = asyncio.create_task(drip())
    async with asyncio.timeout(LONG_S):
        answer = await reader.read(65_536)
    dripping.cancel()
    writer.close()

    assert _refusal(answer) == (408, "request_timeout")


async def test_a_request_with_two_lengths_is_refused(live: Live) -> None:
    """A proxy may read one of the two and this server the other: the rest would become another client's request."""
    smuggled = (
        b"POST /written HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"
    )

    assert _refusal(await _exchange(live, smuggled)) == (400, "bad_request")


@pytest.mark.parametrize(
    ("sent", "refusal"),
    [
        (b"nonsense\r\n\r\n", (400, "bad_request")),
        (b"GET /ok HTTP/1.1\r\nhost: localhost\r\nx-long: " + b"x" * 200_000 + b"\r\n\r\n", (431, "head_too_large")),
    ],
)
async def test_the_servers_own_refusals_look_like_all_others(live: Live, sent: bytes, refusal: tuple[int, str]) -> None:
    """JSON with a code, and a request id that leads to the log."""
    assert _refusal(await _exchange(live, sent)) == refusal


@pytest.mark.parametrize("request_line", ["GET /long", "POST /looked-up"])
async def test_a_read_ends_when_its_client_hangs_up(live: Live, handler: Handler, request_line: str) -> None:
    """What only the client waited for stops, and the server goes on."""
    async with await live.http(Scope.READ) as client:
        key = client.headers["x-api-key"]
        _, writer = await _connect(live)
        body = b'{"a":1}' if request_line.startswith("POST") else b""
        head = f"{request_line} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        async with asyncio.timeout(LONG_S):
            await handler.begun.wait()
            writer.close()
            await handler.cancelled.wait()

        assert (await client.get("/ok")).status_code == 200


async def test_a_body_in_pieces_reaches_a_read(live: Live, handler: Handler) -> None:
    """Looking out for the end of the client takes nothing of its body away."""
    async with await live.http(Scope.READ) as client:
        key = client.headers["x-api-key"]
        _, writer = await _connect(live)
        length = 7 + 200_000
        head = f"POST /looked-up HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\ncontent-length: {length}\r\n\r\n"
        writer.write(head.encode() + b'{"a":')
        for _ in range(20):
            writer.write(b" " * 10_000)
            await writer.drain()
        writer.write(b"1}")
        async with asyncio.timeout(LONG_S):
            await handler.begun.wait()
        writer.close()


async def test_a_request_that_meets_the_stop_is_answered(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over a connection that was idle: its client cannot know of the stop, nor repeat a POST that got no answer."""
    monkeypatch.setattr(HttpProtocol, "linger_s", 2.5)
    reader, writer = await _connect(live)
    asked = b"GET /ok HTTP/1.1\r\nhost: localhost\r\n\r\n"
    writer.write(asked)
    async with asyncio.timeout(LONG_S):
        first = await reader.readuntil(b"}")

        live.server.stop()
        await wait_until(lambda: not live.server.servers[0].is_serving(), description="the server to stop listening")
        writer.write(asked)
        second = await reader.read()
    writer.close()

    answers = [(each.partition(b"\r\n")[0], b"connection: close" in each) for each in (first, second)]
    assert answers == [(b"HTTP/1.1 200 OK", False), (b"HTTP/1.1 200 OK", True)]


async def test_an_answer_in_slices_that_meets_the_stop_is_whole(
    live: Live, handler: Handler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that had begun, and one that is asked for over an idle connection: a page of a journal, a history."""
    monkeypatch.setattr(HttpProtocol, "linger_s", 2.5)
    key = await make_key(live.resources, Scope.READ)
    asked = f"GET /parts HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\n\r\n".encode()
    begun, idle = await _connect(live), await _connect(live)
    async with asyncio.timeout(LONG_S):
        idle[1].write(b"GET /ok HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await idle[0].readuntil(b"}")
        begun[1].write(asked)
        await begun[0].readuntil(b"first\r\n")

        live.server.stop()
        await wait_until(lambda: not live.server.servers[0].is_serving(), description="the server to stop listening")
        idle[1].write(asked)
        await idle[0].readuntil(b"first\r\n")
        handler.may_end.set()
        rests = [await reader.read() for reader, _ in (begun, idle)]
    for _, writer in (begun, idle):
        writer.close()

    assert rests == [b"6\r\nsecond\r\n0\r\n\r\n"] * 2
