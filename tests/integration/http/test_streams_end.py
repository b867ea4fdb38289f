"""How streams end: with their run, their reader, the reader's key, the server; and that nothing is left behind."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support.agent_server import Running, call, collect, contents, run_server, said
from tests.support.api import make_key
from tests.support.paced_model import PacedModel, serve_paced_model
from tests.support.waiting import wait_until
from threadmark.app.access import Scope
from threadmark.app.runs.run_reader import KEY_CHECK_S

READER_COUNT = 200
REQUEST_COUNT = 50
SLOW = call("lookup_order", order_id="o", delay_ms=60_000)


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    """A server with the example agents."""
    async with run_server(tmp_path) as running:
        yield running


@pytest.fixture
async def model() -> AsyncIterator[PacedModel]:
    """A model that says its words when the test lets it."""
    async with serve_paced_model() as model:
        yield model


@pytest.fixture
async def paced(model: PacedModel, tmp_path: Path) -> AsyncIterator[Running]:
    """A server that asks the paced model."""
    async with run_server(tmp_path, model.environment) as running:
        yield running


def watch_count(running: Running) -> int:
    """Readers that listen to the feed."""
    return running.live.resources.wired.feed.watch_count


async def unread(running: Running, count: int) -> None:
    """Wait until so many readers listen."""
    await wait_until(lambda: watch_count(running) == count, description=f"{count} readers", timeout_s=20)


async def status_of(running: Running, thread_id: str, run_id: str) -> str:
    """Where a run stands."""
    return str((await running.sdk.runs.get(thread_id, run_id))["status"])


async def reader_that_resets(running: Running, path: str, count: int) -> None:
    """Read some events, then reset the connection, as a vanished phone does."""
    parts = urlsplit(running.url)
    assert parts.hostname is not None
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    head = f"GET {path} HTTP/1.1\r\nhost: x\r\nx-api-key: {running.key}\r\nlast-event-id: 0\r\n\r\n"
    writer.write(head.encode())
    for _ in range(count):
        await reader.readuntil(b"\r\n\r\n")
    raw: socket.socket = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


async def test_two_hundred_resets_leave_nothing_behind(running: Running) -> None:
    """No listener and no task stays; everybody else is served as before; the run goes on (F23)."""
    thread = await running.thread()
    run = await running.sdk.runs.create(thread, "refund", input=said(SLOW), stream_mode=["values", "custom"])
    path = f"/threads/{thread}/runs/{run['run_id']}/stream"
    await read_until(running, path, "custom")
    await unread(running, 0)
    tasks_before = len(asyncio.all_tasks())

    await asyncio.gather(*(reader_that_resets(running, path, index % 6) for index in range(READER_COUNT)))

    async with running.http() as http:
        answers = await asyncio.gather(*(http.get(f"/threads/{thread}") for _ in range(REQUEST_COUNT)))
        assert [answer.status_code for answer in answers] == [200] * REQUEST_COUNT
    await unread(running, 0)
    await wait_until(lambda: len(asyncio.all_tasks()) <= tasks_before, description="the tasks of the readers to end")
    assert await status_of(running, thread, run["run_id"]) == "running"


async def read_until(running: Running, path: str, event: str) -> None:
    """Read a stream from its start until there is such an event."""
    async with running.http() as http, http.stream("GET", path, headers={"last-event-id": "0"}) as answer:
        async for line in answer.aiter_lines():
            if line == f"event: {event}":
                return


@pytest.mark.parametrize("how", ["stream", "wait"])
async def test_a_run_that_was_to_end_with_its_reader_ends(running: Running, how: str) -> None:
    """`on_disconnect: cancel`: the connection breaks, also a quiet one, and the run is cancelled."""
    thread = await running.thread()
    body = {"assistant_id": "refund", "input": said(SLOW), "on_disconnect": "cancel"}

    async with running.http() as http, http.stream("POST", f"/threads/{thread}/runs/{how}", json=body) as answer:
        run_id = answer.headers["content-location"].rpartition("/")[2]
        await read_until(running, f"/threads/{thread}/runs/{run_id}/stream?stream_mode=custom", "custom")

    async def is_interrupted() -> bool:
        return await status_of(running, thread, run_id) == "interrupted"

    await wait_until(is_interrupted, description="the run to be cancelled")


async def test_a_run_goes_on_without_its_reader(running: Running) -> None:
    """The default, and `on_disconnect: continue`: who leaves comes back to a finished run."""
    thread = await running.thread()
    for body in ({}, {"on_disconnect": "continue"}):
        line = call("lookup_order", order_id="o", delay_ms=300)
        spec = {"assistant_id": "refund", "input": said(line), **body}
        async with running.http() as http, http.stream("POST", f"/threads/{thread}/runs/stream", json=spec) as answer:
            run_id = answer.headers["content-location"].rpartition("/")[2]

        values: Any = await running.sdk.runs.join(thread, run_id)

        assert contents(values)[-1].startswith("Done.")
        assert await status_of(running, thread, run_id) == "success"


async def test_a_second_reader_can_tie_the_run_to_itself(running: Running) -> None:
    """`cancel_on_disconnect` of a join does what `on_disconnect` does; it needs the right to cancel."""
    thread = await running.thread()
    run = await running.sdk.runs.create(thread, "refund", input=said(SLOW))
    path = f"/threads/{thread}/runs/{run['run_id']}/stream?cancel_on_disconnect="
    only_reads = await make_key(running.live.resources, Scope.READ)

    async with running.http(only_reads) as http:
        assert (await http.get(path + "true")).status_code == 403
    await read_until(running, path + "1&stream_mode=custom", "custom")

    async def is_interrupted() -> bool:
        return await status_of(running, thread, run["run_id"]) == "interrupted"

    await wait_until(is_interrupted, description="the run to be cancelled")


async def test_a_reader_whose_key_is_revoked_is_sent_away(running: Running, monkeypatch: Any) -> None:
    """Streams and waits are cut: one that ended in order would look like that of a run that is over. It goes on."""
    assert KEY_CHECK_S <= 10
    monkeypatch.setattr("threadmark.app.runs.run_reader.KEY_CHECK_S", 0.05)
    monkeypatch.setattr("threadmark.app.access.ring.RECHECK_S", 0.05)
    thread = await running.thread()
    run = await running.sdk.runs.create(thread, "refund", input=said(SLOW))
    path = f"/threads/{thread}/runs/{run['run_id']}"
    token = await make_key(running.live.resources, Scope.READ, Scope.RUN)

    async with running.http(token) as http:
        streaming = asyncio.create_task(http.get(f"{path}/stream"))
        joining = asyncio.create_task(http.get(f"{path}/join"))
        await unread(running, 2)
        async with running.http() as admin:
            assert (await admin.delete(f"/admin/keys/{token.split('_')[1]}")).status_code == 204
        for reading in (streaming, joining):
            with pytest.raises(httpx.RemoteProtocolError):
                await reading

    await unread(running, 0)
    assert await status_of(running, thread, run["run_id"]) == "running"


async def test_a_server_that_stops_sends_its_readers_away(paced: Running, model: PacedModel) -> None:
    """Streams and waits are cut, at once: nobody holds the stop up, and nobody takes what came for all that comes."""
    thread = await paced.thread()
    run = await paced.sdk.runs.create(thread, "chat", input=said("hi"))
    path = f"/threads/{thread}/runs/{run['run_id']}"
    await model.next_call()

    async with paced.http() as http, http.stream("GET", f"{path}/stream", headers={"last-event-id": "0"}) as streamed:
        lines = streamed.aiter_lines()
        assert await anext(lines) == "event: metadata"
        joining = asyncio.create_task(http.get(f"{path}/join"))
        await unread(paced, 2)
        paced.live.resources.stopping.set()
        with pytest.raises(httpx.RemoteProtocolError):
            [line async for line in lines]
        with pytest.raises(httpx.RemoteProtocolError):
            await joining

    assert watch_count(paced) == 0


async def test_a_reader_who_takes_nothing_holds_nobody_up(paced: Running, model: PacedModel) -> None:
    """The run, and other readers, go on; what was not read waits in the journal and not in memory."""
    thread = await paced.thread()
    run = await paced.sdk.runs.create(thread, "chat", input=said("hi"), stream_mode=["messages"])
    parts = urlsplit(paced.url)
    with socket.create_connection((parts.hostname, parts.port)) as stalled:
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        path = f"/threads/{thread}/runs/{run['run_id']}/stream?stream_mode=values&stream_mode=messages"
        head = f"GET {path} HTTP/1.1\r\nhost: x\r\nx-api-key: {paced.key}\r\nlast-event-id: 0\r\n\r\n"
        stalled.sendall(head.encode())
        await unread(paced, 1)
        reply = await model.next_call()
        for _ in range(100):
            await reply.say("word " * 500)
        await reply.end()

        values: Any = await paced.sdk.runs.join(thread, run["run_id"])
        whole = await collect(paced.sdk.runs.join_stream(thread, run["run_id"], last_event_id="0"))
        assert watch_count(paced) == 1

    assert len(contents(values)[-1]) == 100 * 2_500
    assert [part.event for part in whole].count("messages/partial") == 100
    await unread(paced, 0)


async def test_a_run_that_vanishes_ends_its_streams(running: Running) -> None:
    """Rolled back, or its thread deleted: the stream ends, a wait says what happened."""
    for vanish in ("rollback", "delete"):
        thread = await running.thread()
        run = await running.sdk.runs.create(thread, "refund", input=said(SLOW))
        path = f"/threads/{thread}/runs/{run['run_id']}"
        async with running.http() as http:
            streaming = asyncio.create_task(http.get(f"{path}/stream"))
            joining = asyncio.create_task(http.get(f"{path}/join"))
            await unread(running, 2)
            if vanish == "rollback":
                await running.sdk.runs.cancel(thread, run["run_id"], action="rollback", wait=True)
            else:
                await running.sdk.threads.delete(thread)
            assert (await streaming).status_code == 200
            assert (await joining).json()["__error__"]["error"] == "RunGone"
            assert (await http.get(path)).status_code == 404
