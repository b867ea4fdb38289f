"""The watch over `/ready` finds what it is there for: untrue answers, cuts and hangs of a process that goes on."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from tests.crash.readiness import Watch
from tests.crash.unrest import Unrest
from tests.support.waiting import wait_until

READY = (200, '{"ready":true,"memory":"ok","reasons":[]}')
AWAY = (503, '{"ready":false,"memory":"ok","reasons":["the state database cannot be reached"]}')
SILENT = (503, '{"ready":false,"memory":"ok","reasons":[]}')
ENOUGH = 5
SOON_S = 1.0


class Server:
    """One that answers as `answer` says: a status with a body, with a cut of the connection, or not at all."""

    def __init__(self) -> None:
        self.answer: tuple[int, str] | str = READY
        self.asked_count = 0
        self.pid = 1
        self.is_over = False
        self.url = ""

    def has_ended(self, pid: int) -> bool:
        """Whether the process of this id runs no more."""
        return self.is_over

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Listen on loopback."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            yield

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n"):
                self.asked_count += 1
                if self.answer == "cut":
                    break
                if isinstance(self.answer, tuple):
                    status, body = self.answer
                    writer.write(f"HTTP/1.1 {status} x\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode())
        writer.close()


@contextlib.asynccontextmanager
async def watching(server: Server, unrest: Unrest) -> AsyncIterator[Watch]:
    """Follow the server, once it has answered that it is ready."""
    watch = Watch(unrest, ending_s=SOON_S, answer_s=SOON_S)
    async with server.serving():
        following = asyncio.create_task(watch.follow(server.url, server))
        await wait_until(lambda: watch.answers, description="an answer", timeout_s=30)
        try:
            yield watch
        finally:
            following.cancel()
            await asyncio.wait([following])


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (AWAY, "not ready, and all was well"),
        (SILENT, "not ready, and no reason"),
        ((500, "{}"), "no answer of readiness"),
        ("cut", "no answer"),
        ("hang", "no answer"),
    ],
)
async def test_an_answer_that_no_fault_excuses_is_named(answer: tuple[int, str] | str, words: str) -> None:
    """Nothing was disturbed, and the process goes on."""
    server, unrest = Server(), Unrest()
    async with watching(server, unrest) as watch:
        server.answer = answer
        await wait_until(lambda: watch.untrue, description="an untrue answer", timeout_s=30)

    assert watch.untrue[0].startswith(words)


async def test_ready_without_a_database_is_named() -> None:
    """PostgreSQL was away for longer than an answer is old."""
    server, unrest = Server(), Unrest()
    async with watching(server, unrest) as watch:
        with unrest.disturbed(), unrest.away():
            await wait_until(lambda: watch.untrue, description="an untrue answer", timeout_s=30)

    assert watch.untrue[0].startswith("ready, and PostgreSQL was away")


async def test_what_a_fault_excuses_is_recorded_alone() -> None:
    """Not ready in an outage, with its reason; a cut by a process that ends; and a yes when all is over."""
    server, unrest = Server(), Unrest()
    async with watching(server, unrest) as watch:
        with unrest.disturbed():
            server.answer, before = AWAY, server.asked_count
            await wait_until(lambda: server.asked_count > before + ENOUGH, description="answers", timeout_s=30)
        server.answer, server.is_over, before = "cut", True, server.asked_count
        await wait_until(lambda: server.asked_count > before + ENOUGH, description="cuts", timeout_s=30)
        server.answer = READY
        await watch.all_ready([server.url])

    assert watch.untrue == []
    statuses = [each.status for each in watch.answers]
    assert (statuses.count(503) >= ENOUGH, statuses.count(None) >= ENOUGH, statuses[-1]) == (True, True, 200)
    assert all(each.latency_s >= 0 for each in watch.answers)
