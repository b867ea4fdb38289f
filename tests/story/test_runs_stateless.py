"""Runs without a thread: each makes its own, which no list shows and which is deleted when it is not needed."""

from typing import Any

import pytest
from langgraph_sdk.errors import NotFoundError

from tests.support.agent_server import Running, call, collect, contents, said
from threadmark.state import finish_deletions, purge_expired

LATER_US = 3600 * 1_000_000


async def purge(running: Running, in_us: int) -> None:
    """What a worker does every now and then, as if it were later."""
    wired = running.live.resources.wired
    at_us = wired.now_us() + in_us
    deletions = await wired.database.write(lambda connection: purge_expired(connection, at_us, 100))
    await finish_deletions(wired.database, deletions)


async def test_the_three_ways_to_start_one(running: Running) -> None:
    """Created and joined, streamed, waited for."""
    created = await running.sdk.runs.create(None, "chat", input=said("hi"))
    joined: Any = await running.sdk.runs.join(created["thread_id"], created["run_id"])
    parts = await collect(running.sdk.runs.stream(None, "chat", input=said("hi"), stream_mode=["updates"]))
    waited: Any = await running.sdk.runs.wait(None, "chat", input=said("hi"))

    assert contents(joined) == contents(waited) == ["hi", "You said: hi\n(1 message in view)"]
    assert [part.event for part in parts] == ["metadata", "updates"]


async def test_its_thread_is_nobodys(running: Running) -> None:
    """It is not found or counted, and it goes some minutes later; what it stands for until then can be read."""
    run = await running.sdk.runs.create(None, "chat", input=said("hi"))
    thread = run["thread_id"]
    await running.sdk.runs.join(thread, run["run_id"])

    assert await running.sdk.threads.search() == []
    assert await running.sdk.threads.count() == 0
    await purge(running, 0)
    assert len(await running.messages(thread)) == 2
    await purge(running, LATER_US)
    with pytest.raises(NotFoundError):
        await running.sdk.runs.get(thread, run["run_id"])
    with pytest.raises(NotFoundError):
        await running.sdk.threads.get(thread)


async def test_its_thread_can_be_kept(running: Running) -> None:
    """`on_completion: keep`: a thread like any other."""
    run = await running.sdk.runs.create(None, "chat", input=said("hi"), on_completion="keep")
    await running.sdk.runs.join(run["thread_id"], run["run_id"])
    await purge(running, LATER_US)

    assert [each["thread_id"] for each in await running.sdk.threads.search()] == [run["thread_id"]]
    await running.sdk.runs.wait(run["thread_id"], "chat", input=said("again"))
    assert len(await running.messages(run["thread_id"])) == 4


async def test_a_thread_in_use_is_not_taken_away(running: Running) -> None:
    """However long its run takes."""
    line = call("lookup_order", order_id="o", delay_ms=60_000)
    run = await running.sdk.runs.create(None, "refund", input=said(line))
    async for part in running.sdk.runs.join_stream(
        run["thread_id"], run["run_id"], stream_mode="custom", last_event_id="0"
    ):
        if part.event == "custom":
            break

    await purge(running, LATER_US)

    assert (await running.sdk.runs.get(run["thread_id"], run["run_id"]))["status"] == "running"


async def test_a_batch_runs(running: Running) -> None:
    """Each of its runs, on a thread of its own."""
    runs = await running.sdk.runs.create_batch(
        [{"assistant_id": "chat", "input": said(str(number))} for number in range(3)]  # type: ignore[typeddict-item]
    )

    results: list[Any] = [await running.sdk.runs.join(run["thread_id"], run["run_id"]) for run in runs]

    assert [contents(values)[0] for values in results] == ["0", "1", "2"]
