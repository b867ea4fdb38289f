"""The server is killed while a client reads: it comes back, the run goes on, and the client misses nothing.

The reader is the unmodified SDK, which comes back by itself to where the answer's `Location` says.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from langgraph_sdk.schema import StreamPart

from tests.support.agent_server import call, contents, said
from tests.support.paced_model import PacedCall, PacedModel
from tests.support.service import Service

StartService = Callable[..., Service]
MODES: list[Any] = ["values", "updates", "messages-tuple", "custom"]
STEPS = [
    call("lookup_order", order_id="o"),
    call("check_policy", order_id="o", amount_cents=5, delay_ms=1_500),
    call("confirm", order_id="o"),
]


async def read_to_the_end(
    stream: Any, seen: list[StreamPart], is_reached: Callable[[StreamPart], bool], reached: asyncio.Event
) -> None:
    """Collect a stream's events, and signal when one of them is reached."""
    async for part in stream:
        seen.append(part)
        if is_reached(part):
            reached.set()


async def replayed(service: Service, thread_id: str, run_id: str) -> list[StreamPart]:
    """The whole stream, as the journal replays it."""
    async with service.sdk() as sdk:
        return [part async for part in sdk.runs.join_stream(thread_id, run_id, last_event_id="0")]


def is_transient(part: StreamPart) -> bool:
    """Whether the event is one that a crash may take: it streamed, and its step was not recorded."""
    return part.event in ("custom", "messages") and int(str(part.id).partition("-")[2]) >= 10


async def test_a_stream_outlives_the_server(start_service: StartService) -> None:
    """Killed in the middle of a tool call and started again: one stream, whole, in order, nothing twice."""
    service = start_service()
    async with service.sdk() as sdk:
        thread = (await sdk.threads.create())["thread_id"]
        seen: list[StreamPart] = []
        reached = asyncio.Event()
        stream = sdk.runs.stream(thread, "refund", input=said(*STEPS), stream_mode=MODES, stream_resumable=True)
        reading = asyncio.create_task(
            read_to_the_end(
                stream,
                seen,
                lambda part: part.event == "custom" and part.data == {"effect": "check_policy", "attempt": 1},
                reached,
            )
        )
        await reached.wait()

        await asyncio.to_thread(service.restart)
        await reading

    whole = await replayed(service, thread, seen[0].data["run_id"])
    assert [part.data["attempt"] for part in whole if part.event == "metadata"] == [1, 2]
    lost = [part for part in seen if part not in whole]
    assert [part for part in seen if part in whole] == whole
    assert [part.data for part in lost] == [{"effect": "check_policy", "attempt": 1}]
    assert contents(whole[-1].data)[-1].startswith("Done.")
    assert len({part.id for part in seen}) == len(seen)


async def test_a_stream_outlives_a_deploy(start_service: StartService) -> None:
    """Stopped in order, a server ends its streams and leaves the run to the next one; the reader misses nothing."""
    service = start_service()
    async with service.sdk() as sdk:
        thread = (await sdk.threads.create())["thread_id"]
        seen: list[StreamPart] = []
        reached = asyncio.Event()
        stream = sdk.runs.stream(thread, "refund", input=said(*STEPS), stream_mode=MODES, stream_resumable=True)
        reading = asyncio.create_task(read_to_the_end(stream, seen, lambda part: part.event == "custom", reached))
        await reached.wait()

        await asyncio.to_thread(service.stop)
        await asyncio.to_thread(service.start)
        await reading

    whole = await replayed(service, thread, seen[0].data["run_id"])
    assert [part for part in seen if part in whole] == whole
    assert all(is_transient(part) for part in seen if part not in whole)
    assert contents(whole[-1].data)[-1].startswith("Done.")


async def test_a_reply_that_was_cut_by_a_crash_is_said_again(start_service: StartService, model: PacedModel) -> None:
    """What streamed of it is not in the journal; the reply comes again, whole, under another message id."""
    service = start_service(environment=model.environment)
    async with service.sdk() as sdk:
        thread = (await sdk.threads.create())["thread_id"]
        seen: list[StreamPart] = []
        reached = asyncio.Event()
        stream = sdk.runs.stream(thread, "chat", input=said("hi"), stream_mode=MODES, stream_resumable=True)
        reading = asyncio.create_task(
            read_to_the_end(
                stream,
                seen,
                lambda part: part.event == "messages" and part.data[0]["content"] == "two ",
                reached,
            )
        )
        await (await model.next_call()).say("One ", "two ")
        await reached.wait()

        service.kill()
        await asyncio.to_thread(service.start)
        again: PacedCall = await model.next_call()
        await again.say("Once ", "more.")
        await again.end()
        await reading

    whole = await replayed(service, thread, seen[0].data["run_id"])
    lost = [part for part in seen if part not in whole]
    assert [part for part in seen if part in whole] == whole
    assert all(map(is_transient, lost))
    chunks = [part.data[0] for part in seen if part.event == "messages"]
    by_id: dict[str, str] = {}
    for chunk in chunks:
        by_id[chunk["id"]] = by_id.get(chunk["id"], "") + chunk["content"]
    assert list(by_id.values()) == ["One two ", "Once more."]
    assert contents(seen[-1].data) == ["hi", "Once more."]


async def test_a_wait_outlives_the_server(start_service: StartService) -> None:
    """The connection breaks before the answer, and the SDK joins the run instead of starting another."""
    service = start_service()
    async with service.sdk() as sdk:
        thread = (await sdk.threads.create())["thread_id"]
        with pytest.warns(UserWarning, match="attempting reconnect"):
            values = await _waited(service, thread, service.restart)

        assert contents(values)[-1].startswith("Done.")
        (run,) = await sdk.runs.list(thread)
        assert (run["status"], run["attempts"]) == ("success", 2)  # type: ignore[typeddict-item]


async def test_a_wait_that_is_cut_by_a_stop_is_no_answer(start_service: StartService) -> None:
    """A server that stops cuts its waits: half an answer would be read as a whole one."""
    service = start_service()
    async with service.sdk() as sdk:
        thread = (await sdk.threads.create())["thread_id"]
        with pytest.warns(UserWarning, match="attempting reconnect"):
            values = await _waited(service, thread, service.stop, service.start)

    assert contents(values)[-1].startswith("Done.")


async def test_a_reader_that_rejoins_after_the_crash_receives_the_rest(start_service: StartService) -> None:
    """Every event that was read before the crash is a place to go on from after it."""
    service = start_service()
    async with service.sdk() as sdk:
        thread = (await sdk.threads.create())["thread_id"]
        stream = sdk.runs.stream(thread, "refund", input=said(*STEPS), stream_mode=MODES, stream_resumable=True)
        before = [part async for part in stream]
    run_id = before[0].data["run_id"]

    service.restart()

    async with service.sdk() as sdk:
        for index, last in enumerate(before):
            rest = [part async for part in sdk.runs.join_stream(thread, run_id, last_event_id=last.id)]
            assert rest == before[index + 1 :]


async def _waited(service: Service, thread_id: str, *acts: Callable[[], None]) -> Any:
    """What a wait is answered, while these things happen to the server in the middle of a call."""
    async with service.sdk() as sdk:
        waiting = asyncio.create_task(sdk.runs.wait(thread_id, "refund", input=said(*STEPS)))
        await _in_the_call(service, thread_id)
        for act in acts:
            await asyncio.to_thread(act)
        return await waiting


async def _in_the_call(service: Service, thread_id: str) -> None:
    """Wait until the slow call has reached the outside world."""
    async with service.sdk() as sdk:
        while not (runs := await sdk.runs.list(thread_id)):
            pass
        stream = sdk.runs.join_stream(thread_id, runs[0]["run_id"], stream_mode="custom", last_event_id="0")
        async for part in stream:
            if part.event == "custom" and "check_policy" in json.dumps(part.data):
                return
