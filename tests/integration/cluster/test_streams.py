"""Streams read through one process while another moves the run: the same events whatever becomes of Redis."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.schema import StreamPart

from tests.support.agent_server import TIMEOUT_S, Running, call, collect, said
from tests.support.api import make_key
from tests.support.cluster import Cluster
from tests.support.live_server import serve_live
from tests.support.paced_model import PacedModel, serve_paced_model
from tests.support.servers import PrivateRedis
from tests.support.waiting import wait_until
from threadmark.app.access import Scope
from threadmark.workers.wiring import open_resources

MODES: list[Any] = ["values", "updates", "messages", "messages-tuple", "custom"]
WORDS = [f"word-{number} " for number in range(12)]


@dataclass(frozen=True)
class Stage:
    """Two APIs, a worker beside them, a model that speaks when the test lets it, and Redis."""

    first: Running
    second: Running
    model: PacedModel
    redis: PrivateRedis


@asynccontextmanager
async def an_api(folder: Path, environment: dict[str, str]) -> AsyncIterator[Running]:
    """An API that moves nothing itself."""
    async with serve_live(folder, environment=environment) as live:
        key = await make_key(live.resources, Scope.ADMIN)
        async with get_client(url=live.url, api_key=key, timeout=TIMEOUT_S) as sdk:
            yield Running(live, key, sdk)


@pytest.fixture
async def stage(tmp_path: Path, postgres_url: str, private_redis: PrivateRedis) -> AsyncIterator[Stage]:
    """All of it, in the test's own loop; each side shares nothing with the others but the database and Redis."""
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(serve_paced_model())
        environment = {
            "THREADMARK_STATE_DATABASE_URL": postgres_url,
            "THREADMARK_REDIS_URL": private_redis.url,
            **model.environment,
        }
        first = await stack.enter_async_context(an_api(tmp_path, environment))
        second = await stack.enter_async_context(an_api(tmp_path, environment))
        settings = first.live.resources.settings
        await stack.enter_async_context(open_resources(settings, with_worker=True, with_readers=False))
        yield Stage(first, second, model, private_redis)


class Reader:
    """Reads a stream in the background and keeps the parts received so far."""

    def __init__(self, stream: AsyncIterator[StreamPart]) -> None:
        self.parts: list[StreamPart] = []
        self.reading = asyncio.create_task(self._read(stream))

    @property
    def words(self) -> str:
        """The text of the reply so far."""
        texts = [part.data[0]["content"] for part in self.parts if part.event == "messages/partial"]
        return str(texts[-1]) if texts else ""

    async def receives(self, text: str) -> None:
        """Return when the reply has come so far."""
        await wait_until(lambda: text in self.words, description=f"{text!r} to be received")

    async def to_the_end(self) -> list[StreamPart]:
        """Every part, when the stream has ended."""
        await asyncio.wait_for(self.reading, TIMEOUT_S)
        return self.parts

    async def _read(self, stream: AsyncIterator[StreamPart]) -> None:
        async for part in stream:
            self.parts.append(part)


def started(stage: Stage, thread: str) -> Reader:
    """A run whose stream is read through the first API."""
    stream = stage.first.sdk.runs.stream(thread, "chat", input=said("hi"), stream_mode=MODES, stream_resumable=True)
    return Reader(stream)


def rejoined(running: Running, thread: str, run_id: str, last_id: str = "0") -> AsyncIterator[StreamPart]:
    """The run's stream after an event."""
    return running.sdk.runs.join_stream(thread, run_id, last_event_id=last_id)


async def test_words_come_while_the_model_speaks(stage: Stage) -> None:
    """Both APIs stream them live, and afterwards the journal gives both the same events with the same ids."""
    thread = await stage.first.thread()
    reader = started(stage, thread)
    reply = await stage.model.next_call()
    await reply.say(*WORDS[:3])
    await reader.receives(WORDS[2])
    run_id = reader.parts[0].data["run_id"]
    late = Reader(rejoined(stage.second, thread, run_id))
    await late.receives(WORDS[2])
    await reply.say(*WORDS[3:])
    await late.receives(WORDS[-1])
    await reply.end()

    whole = await reader.to_the_end()
    assert await late.to_the_end() == whole
    assert await collect(rejoined(stage.second, thread, run_id)) == whole
    assert reader.words == "".join(WORDS)


def flush(redis: PrivateRedis) -> None:
    """Forget everything; connections stay."""
    redis.flush()


def restart(redis: PrivateRedis) -> None:
    """Die, and come back empty."""
    redis.restart()


def kill(redis: PrivateRedis) -> None:
    """Die for good."""
    redis.kill()


@pytest.mark.parametrize("lose", [flush, restart, kill])
async def test_nothing_is_lost_with_redis(stage: Stage, lose: Callable[[PrivateRedis], None]) -> None:
    """In the middle of a reply: a reader that was there and one that joins later both receive all of it once (F18)."""
    thread = await stage.first.thread()
    reader = started(stage, thread)
    reply = await stage.model.next_call()
    await reply.say(*WORDS[:3])
    await reader.receives(WORDS[2])
    run_id = reader.parts[0].data["run_id"]

    await asyncio.to_thread(lose, stage.redis)
    await reply.say(*WORDS[3:8])
    late = Reader(rejoined(stage.second, thread, run_id))
    await reply.say(*WORDS[8:])
    await reply.end()

    whole = await reader.to_the_end()
    assert await late.to_the_end() == whole
    assert await collect(rejoined(stage.first, thread, run_id)) == whole
    assert reader.words == "".join(WORDS)
    ids = [part.id for part in whole]
    assert len(set(ids)) == len(ids)


async def test_a_reader_that_leaves_at_any_event_rejoins_to_the_rest(stage: Stage) -> None:
    """Cut off after each event in turn, and taken up through the other API while the reply still streams (F23)."""
    thread = await stage.first.thread()
    reader = started(stage, thread)
    reply = await stage.model.next_call()
    pieces: list[StreamPart] = []
    apis = [stage.second, stage.first]
    for number, word in enumerate(WORDS):
        await reply.say(word)
        await reader.receives(word)
        run_id = reader.parts[0].data["run_id"]
        last_id = (pieces[-1].id if pieces else None) or "0"
        async with aclosing(rejoined(apis[number % 2], thread, run_id, last_id)) as stream:  # type: ignore[type-var]
            pieces.append(await anext(stream))
    await reply.end()

    whole = await reader.to_the_end()
    rest = await collect(rejoined(stage.first, thread, run_id, pieces[-1].id or "0"))
    assert pieces + rest == whole
    feeds = [running.live.resources.wired.feed for running in (stage.first, stage.second)]
    await wait_until(lambda: [feed.watch_count for feed in feeds] == [0, 0], description="every reader to be gone")


async def test_another_tenant_receives_nothing_of_it(stage: Stage) -> None:
    """Its key finds no such run, and no stream in Redis has a name without the tenant."""
    thread = await stage.first.thread()
    reader = started(stage, thread)
    reply = await stage.model.next_call()
    await reply.say(*WORDS[:2])
    await reader.receives(WORDS[1])
    run_id = reader.parts[0].data["run_id"]
    stranger = await make_key(stage.first.live.resources, Scope.ADMIN, tenant_id="stranger")

    async with stage.second.http(stranger) as http:
        answer = await http.get(f"/threads/{thread}/runs/{run_id}/stream", headers={"last-event-id": "0"})
    with stage.redis.client() as client:
        keys = [key for key in client.keys("threadmark:*") if run_id in key]

    await reply.end()
    await reader.to_the_end()
    assert answer.status_code == 404
    assert keys == [f"threadmark:default:flashes:{run_id}"]


async def test_a_stream_of_real_processes(fleet: Cluster, client: object, fleet_redis: PrivateRedis) -> None:
    """An API process streams what a worker process does, as it happens; Redis is emptied in between."""
    service = fleet.services[0]
    script = [call("lookup_order", order_id="live", delay_ms=300), call("confirm", order_id="live", delay_ms=300)]
    async with service.sdk(fleet.key) as sdk:
        thread = (await sdk.threads.create())["thread_id"]
        stream = sdk.runs.stream(thread, "refund", input=said(*script), stream_mode=MODES, stream_resumable=True)
        parts: list[StreamPart] = []
        async for part in stream:
            parts.append(part)
            if part.event == "custom" and part.data["effect"] == "lookup_order":
                fleet_redis.flush()
                live = (await sdk.runs.get(thread, parts[0].data["run_id"]))["status"]
        again = await collect(sdk.runs.join_stream(thread, parts[0].data["run_id"], last_event_id="0"))

    assert live == "running"
    assert [part.data["effect"] for part in parts if part.event == "custom"] == ["lookup_order", "confirm"]
    assert again == parts
