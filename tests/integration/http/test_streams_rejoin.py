"""Streams that break off: a client that reconnects receives the rest, all of it and nothing twice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk.schema import StreamPart

from tests.support.agent_server import Running, call, collect, run_server, said
from tests.support.paced_model import PacedModel, serve_paced_model
from tests.support.waiting import wait_until

MODES: list[Any] = ["values", "updates", "messages", "messages-tuple", "custom"]


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


async def some(stream: AsyncIterator[StreamPart], count: int) -> list[StreamPart]:
    """The first events of a stream, which is then dropped."""
    found: list[StreamPart] = []
    async with aclosing(stream):  # type: ignore[type-var]
        async for part in stream:
            found.append(part)
            if len(found) == count:
                break
    return found


@pytest.mark.parametrize("page_size", [1, 3, 256])
async def test_after_any_event_the_rest_is_received(running: Running, monkeypatch: Any, page_size: int) -> None:
    """A finished run with every kind of event: from each of its ids on, exactly what followed."""
    monkeypatch.setattr("threadmark.app.runs.event_tail.ENTRY_COUNT_MAX", page_size)
    thread = await running.thread()
    script = [call("lookup_order", order_id="o"), call("refund", order_id="o", amount_cents=1)]
    whole = await collect(
        running.sdk.runs.stream(thread, "refund", input=said(*script), stream_mode=MODES, stream_resumable=True)
    )
    run_id = whole[0].data["run_id"]
    ids = [part.id for part in whole]
    assert len(set(ids)) == len(ids)
    await running.sdk.runs.wait(thread, "refund", command={"resume": True})

    for index, last_id in enumerate(["0", *ids]):
        rest = await collect(running.sdk.runs.join_stream(thread, run_id, last_event_id=last_id))
        assert rest == whole[index:]


@pytest.mark.parametrize("everything", ["0", "-1"])
async def test_any_run_can_be_streamed_from_its_start(running: Running, everything: str) -> None:
    """Also one that was never streamed and not requested as resumable: its events come from the journal."""
    thread = await running.thread()
    run = await running.sdk.runs.create(thread, "chat", input=said("hi"), stream_mode="updates")
    await running.sdk.runs.join(thread, run["run_id"])

    parts = await collect(running.sdk.runs.join_stream(thread, run["run_id"], last_event_id=everything))

    assert [part.event for part in parts] == ["metadata", "updates"]
    assert all(part.id for part in parts)


async def test_a_reply_goes_on_where_its_reader_left_it(paced: Running, model: PacedModel) -> None:
    """Dropped in the middle of a reply, taken up while it still streams: together the whole, word for word."""
    thread = await paced.thread()
    stream = paced.sdk.runs.stream(thread, "chat", input=said("hi"), stream_mode=MODES, stream_resumable=True)
    reading = asyncio.create_task(some(stream, 9))
    reply = await model.next_call()
    await reply.say("One ", "two ", "three ")
    read = await reading

    await reply.say("four ", "five ")
    run_id = read[0].data["run_id"]
    rejoined = paced.sdk.runs.join_stream(thread, run_id, last_event_id=read[-1].id)
    rest = asyncio.create_task(collect(rejoined))
    await wait_until(lambda: paced.live.resources.wired.feed.watch_count == 1, description="the second reader")
    await reply.say("six.")
    await reply.end()

    read += await rest
    whole = await collect(paced.sdk.runs.join_stream(thread, run_id, last_event_id="0"))
    assert read == whole
    said_last = [part.data[0]["content"] for part in read if part.event == "messages/partial"][-1]
    assert said_last == "One two three four five six."


async def test_without_an_id_a_reader_receives_what_comes(paced: Running, model: PacedModel) -> None:
    """Nothing that was said before is said again; a growing message grows from its beginning."""
    thread = await paced.thread()
    run = await paced.sdk.runs.create(thread, "chat", input=said("hi"), stream_mode=["messages", "updates"])
    reply = await model.next_call()
    await reply.say("One ", "two ")
    await _flashed(paced, thread, run["run_id"], 2)

    late = asyncio.create_task(collect(paced.sdk.runs.join_stream(thread, run["run_id"])))
    await wait_until(lambda: paced.live.resources.wired.feed.watch_count == 1, description="the late reader")
    await _joined(paced)
    await reply.say("three.")
    await reply.end()

    assert [(part.event, _text(part)) for part in await late] == [
        ("messages/partial", "One two three."),
        ("messages/complete", "One two three."),
        ("updates", None),
    ]


async def test_a_finished_run_has_nothing_new(running: Running) -> None:
    """Without an id the stream of a run that has ended is empty, and ends at once."""
    thread = await running.thread()
    run = await running.sdk.runs.create(thread, "chat", input=said("hi"), stream_resumable=True)
    await running.sdk.runs.join(thread, run["run_id"])

    assert await collect(running.sdk.runs.join_stream(thread, run["run_id"])) == []


async def test_a_run_that_has_not_begun_is_streamed_from_its_start(paced: Running, model: PacedModel) -> None:
    """It waits behind another one; all of it is news."""
    thread = await paced.thread()
    await paced.sdk.runs.create(thread, "chat", input=said("first"))
    second = await paced.sdk.runs.create(thread, "chat", input=said("second"), stream_mode="updates")
    reply = await model.next_call()
    late = asyncio.create_task(collect(paced.sdk.runs.join_stream(thread, second["run_id"])))
    await wait_until(lambda: paced.live.resources.wired.feed.watch_count == 1, description="the reader")

    await reply.say("1")
    await reply.end()
    reply = await model.next_call()
    await reply.say("2")
    await reply.end()

    assert [part.event for part in await late] == ["metadata", "updates"]


async def test_modes_of_a_join_are_its_own(running: Running) -> None:
    """A reader may ask for any mode, whatever the run was started with; the default is the modes of its start."""
    thread = await running.thread()
    run = await running.sdk.runs.create(thread, "chat", input=said("hi"), stream_mode=["updates"])
    await running.sdk.runs.join(thread, run["run_id"])

    custom = await collect(
        running.sdk.runs.join_stream(thread, run["run_id"], stream_mode=["messages-tuple"], last_event_id="0")
    )

    assert {part.event for part in custom} == {"metadata", "messages"}
    # SDKs of other languages send a list as one JSON text.
    async with running.http() as http:
        path = f"/threads/{thread}/runs/{run['run_id']}/stream"
        asked = {"stream_mode": '["values","updates"]', "cancel_on_disconnect": "0"}
        answer = await http.get(path, params=asked, headers={"last-event-id": "-1"})
    assert [line for line in answer.text.split("\r\n") if line.startswith("event:")] == [
        "event: metadata",
        "event: values",
        "event: updates",
        "event: values",
    ]


@pytest.mark.parametrize(
    "bad", ["x", "1-", "1-2-3", "-5", "9999-1", "99999999999-1", "1-2\x01", "0, 1", "\xff", "1795954928134-0"]
)
async def test_a_bad_id_is_refused(running: Running, bad: str) -> None:
    """400: an id that no event of this thread can have was mistaken for one, or made up."""
    thread = await running.thread()
    run = await running.sdk.runs.create(thread, "chat", input=said("hi"))
    await running.sdk.runs.join(thread, run["run_id"])
    path = f"/threads/{thread}/runs/{run['run_id']}/stream"

    async with running.http() as http:
        answer = await http.get(path, headers=[(b"last-event-id", bad.encode("latin-1"))])
        twice = await http.get(path, headers=[("last-event-id", "1-0"), ("last-event-id", "1-5")])

    for each in (answer, twice):
        assert each.status_code == 400
    assert twice.json()["code"] == "bad_event_id"


async def test_a_quiet_stream_says_that_it_is_there(paced: Running, model: PacedModel, monkeypatch: Any) -> None:
    """A comment now and then keeps proxies from closing it; readers skip comments."""
    monkeypatch.setattr("threadmark.app.runs.run_reader.HEARTBEAT_S", 0.01)
    thread = await paced.thread()
    async with (
        paced.http() as http,
        http.stream("POST", f"/threads/{thread}/runs/stream", json={"assistant_id": "chat", "input": said("hi")}) as it,
    ):
        reply = await model.next_call()
        lines = it.aiter_lines()
        async for line in lines:
            if line == ": heartbeat":
                break
        await reply.end()
        rest = [line async for line in lines]

    assert any(line.startswith("event: values") for line in rest)


async def test_a_wait_sends_blanks_before_its_answer(paced: Running, model: PacedModel, monkeypatch: Any) -> None:
    """The headers come at once, with where to go on; what follows the blanks is the one JSON document."""
    monkeypatch.setattr("threadmark.app.runs.run_reader.HEARTBEAT_S", 0.01)
    thread = await paced.thread()
    body = {"assistant_id": "chat", "input": said("hi")}
    async with paced.http() as http, http.stream("POST", f"/threads/{thread}/runs/wait", json=body) as answer:
        reply = await model.next_call()
        assert answer.status_code == 200
        chunks = answer.aiter_bytes()
        first = await anext(chunks)
        await reply.say("Done.")
        await reply.end()
        text = first + b"".join([chunk async for chunk in chunks])

    assert first.strip() == b""
    assert httpx.Response(200, content=text).json()["messages"][-1]["content"] == "Done."


async def _flashed(paced: Running, thread_id: str, run_id: str, count: int) -> None:
    """Wait until this many words of the first reply were shown."""
    feed = paced.live.resources.wired.feed
    with feed.watch("default", run_id) as watch:
        await wait_until(lambda: len(watch.flashes(2, 0)) == count, description="the first words")


async def _joined(paced: Running) -> None:
    """Wait until a reader that listens has also looked into the journal."""
    database = paced.live.resources.database
    seen = database.read_count
    await wait_until(lambda: database.read_count > seen, description="the reader's look")


def _text(part: StreamPart) -> str | None:
    return part.data[0]["content"] if part.event.startswith("messages/") else None
