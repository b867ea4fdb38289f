"""Two runs on one thread: what the second does to the first, by the strategy that it names."""

import asyncio
from typing import Any

import pytest
from langgraph_sdk.errors import ConflictError, NotFoundError

from tests.support.agent_server import Running, call, contents, said
from tests.support.paced_model import PacedModel
from tests.support.waiting import wait_until

SLOW = call("lookup_order", order_id="o", delay_ms=60_000)


async def busy(running: Running, *, agent: str = "refund", line: str = SLOW) -> tuple[str, str]:
    """A thread with a run that is in the middle of a tool call: their ids."""
    thread = await running.thread()
    run = await running.sdk.runs.create(thread, agent, input=said(line))
    async for part in running.sdk.runs.join_stream(thread, run["run_id"], stream_mode="custom", last_event_id="0"):
        if part.event == "custom":
            break
    return thread, run["run_id"]


async def test_a_busy_thread_rejects(running: Running) -> None:
    """`reject`: 409, and the first run goes on undisturbed."""
    thread, first = await busy(running)

    with pytest.raises(ConflictError, match="already running a task"):
        await running.sdk.runs.create(thread, "refund", input=said("hi"), multitask_strategy="reject")

    assert [run["run_id"] for run in await running.sdk.runs.list(thread)] == [first]
    assert (await running.sdk.runs.get(thread, first))["status"] == "running"
    idle = await running.thread()
    await running.sdk.runs.wait(idle, "chat", input=said("hi"), multitask_strategy="reject")


@pytest.mark.parametrize("strategy", [None, "enqueue"])
async def test_runs_queue_up(paced: Running, model: PacedModel, strategy: Any) -> None:
    """`enqueue`, the default: pending until the runs before it have ended, in the order in which they came."""
    thread = await paced.thread()
    runs = [
        await paced.sdk.runs.create(thread, "chat", input=said(str(number)), multitask_strategy=strategy)
        for number in range(3)
    ]
    waiting = [asyncio.create_task(paced.sdk.runs.join(thread, run["run_id"])) for run in runs]

    for number in range(3):
        reply = await model.next_call()
        listed = await paced.sdk.runs.list(thread)
        assert [run["status"] for run in listed[: 2 - number]] == ["pending"] * (2 - number)
        await reply.say(f"answer {number}")
        await reply.end()

    results: list[Any] = [await each for each in waiting]
    said_by_then = ["0", "answer 0", "1", "answer 1", "2", "answer 2"]
    assert [contents(values) for values in results] == [said_by_then[:2], said_by_then[:4], said_by_then]


async def test_of_two_enqueues_at_once_both_run(running: Running) -> None:
    """None is lost, none runs twice, and they do not mix."""
    thread = await running.thread()

    await asyncio.gather(*(running.sdk.runs.wait(thread, "chat", input=said(str(number))) for number in range(5)))

    spoken = [message["content"] for message in await running.messages(thread)]
    assert sorted(spoken[::2]) == [str(number) for number in range(5)]
    assert [text.split("\n")[0] for text in spoken[1::2]] == [f"You said: {text}" for text in spoken[::2]]


async def test_a_run_interrupts(running: Running) -> None:
    """`interrupt`: the first ends, what it did stays, its open call gets a result; then the second runs."""
    thread, first = await busy(running)

    values: Any = await running.sdk.runs.wait(thread, "refund", input=said("next"), multitask_strategy="interrupt")

    assert (await running.sdk.runs.get(thread, first))["status"] == "interrupted"
    human, asked, result, following, answer = values["messages"]
    assert (human["content"], following["content"]) == (SLOW, "next")
    assert result["tool_call_id"] == asked["tool_calls"][0]["id"]
    assert result["status"] == "error"
    assert answer["content"].startswith("You said: next")


async def test_a_run_rolls_back(running: Running) -> None:
    """`rollback`: the first is gone, and what it said with it; then the second runs."""
    thread, first = await busy(running)

    values: Any = await running.sdk.runs.wait(thread, "refund", input=said("next"), multitask_strategy="rollback")

    with pytest.raises(NotFoundError):
        await running.sdk.runs.get(thread, first)
    assert contents(values) == ["next", "You said: next\n(1 message in view)"]
    history = await running.sdk.threads.get_history(thread)
    assert {state["metadata"]["run_id"] for state in history} == {(await running.sdk.runs.list(thread))[0]["run_id"]}  # type: ignore[index]


async def test_a_cancelled_run_keeps_what_it_did(running: Running) -> None:
    """Cancelled in a tool call: the answer comes when it has ended; the call has a result; the next turn succeeds."""
    thread, first = await busy(running)

    await running.sdk.runs.cancel(thread, first, wait=True)

    run: Any = await running.sdk.runs.get(thread, first)
    assert (run["status"], run["reason"]) == ("interrupted", "cancelled")
    assert (await running.sdk.threads.get(thread))["status"] == "idle"
    assert [message["type"] for message in await running.messages(thread)] == ["human", "ai", "tool"]
    with pytest.raises(NotFoundError, match="No matching runs to cancel"):
        await running.sdk.runs.cancel(thread, first)
    values: Any = await running.sdk.runs.wait(thread, "refund", input=said("go on"))
    assert contents(values)[-1].startswith("You said: go on")


async def test_a_run_cancelled_with_rollback_was_never_there(running: Running) -> None:
    """Its messages are gone, its id is 404, and the thread is as it was before."""
    thread = await running.thread()
    before: Any = await running.sdk.runs.wait(thread, "refund", input=said("first"))
    run = await running.sdk.runs.create(thread, "refund", input=said(SLOW))
    async for part in running.sdk.runs.join_stream(thread, run["run_id"], stream_mode="custom", last_event_id="0"):
        if part.event == "custom":
            break

    await running.sdk.runs.cancel(thread, run["run_id"], wait=True, action="rollback")

    with pytest.raises(NotFoundError):
        await running.sdk.runs.get(thread, run["run_id"])
    assert await running.messages(thread) == before["messages"]
    assert len(await running.sdk.threads.get_history(thread)) == 2


async def test_a_reply_that_was_cut_short_stays(paced: Running, model: PacedModel) -> None:
    """What had streamed of it is in the thread; the next run goes on from there."""
    thread = await paced.thread()
    run = await paced.sdk.runs.create(thread, "chat", input=said("tell"), stream_mode="messages")
    reply = await model.next_call()
    await reply.say("Once upon ", "a time")
    async for part in paced.sdk.runs.join_stream(thread, run["run_id"], last_event_id="0"):
        if part.event == "messages/partial" and part.data[0]["content"] == "Once upon a time":
            break

    await paced.sdk.runs.cancel(thread, run["run_id"], wait=True)

    assert contents({"messages": await paced.messages(thread)}) == ["tell", "Once upon a time"]


async def test_a_run_can_be_ordered_for_later(running: Running) -> None:
    """`after_seconds`: pending until then, and it can be cancelled before."""
    thread = await running.thread()
    later = await running.sdk.runs.create(thread, "chat", input=said("later"), after_seconds=3600)
    soon = await running.thread()
    values: Any = await running.sdk.runs.wait(soon, "chat", input=said("soon"), after_seconds=1)

    assert contents(values)[0] == "soon"
    shown: Any = await running.sdk.runs.get(thread, later["run_id"])
    assert (shown["status"], shown["attempts"]) == ("pending", 0)
    await running.sdk.runs.cancel(thread, later["run_id"], wait=True)

    async def is_idle() -> bool:
        return (await running.sdk.threads.get(thread))["status"] == "idle"

    await wait_until(is_idle, description="the thread to be idle")
