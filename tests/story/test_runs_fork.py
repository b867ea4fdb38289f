"""Forks: a run that leaves from an earlier checkpoint, on a branch of its own."""

from typing import Any

import pytest

from tests.support.agent_server import Running, call, contents, said

LOOK = call("lookup_order", order_id="o")


async def checkpoints(running: Running, thread_id: str) -> list[Any]:
    """The positions of the thread, oldest first."""
    return list(reversed(await running.sdk.threads.get_history(thread_id, limit=100)))


async def test_another_question_is_asked_in_the_past(running: Running) -> None:
    """The new branch has what was said by then and what was said instead; the old one stays in the history."""
    thread = await running.thread()
    await running.sdk.runs.wait(thread, "chat", input=said("first"))
    old: Any = await running.sdk.runs.wait(thread, "chat", input=said("second"))
    then = (await checkpoints(running, thread))[1]
    assert contents(then["values"]) == ["first", "You said: first\n(1 message in view)"]

    new: Any = await running.sdk.runs.wait(
        thread, "chat", input=said("instead"), checkpoint_id=then["checkpoint"]["checkpoint_id"]
    )

    assert contents(new) == [*contents(then["values"]), "instead", "You said: instead\n(3 messages in view)"]
    assert contents(await _values(running, thread)) == contents(new)
    history = await checkpoints(running, thread)
    assert contents(old) in [contents(state["values"]) for state in history]
    children = [state for state in history if state["parent_checkpoint"] == then["checkpoint"]]
    assert [contents(state["values"])[-1] for state in children] == ["second", "instead"]


async def test_a_past_is_run_again(running: Running) -> None:
    """With a checkpoint and no input a run goes on from its next node: once more, as another execution."""
    thread = await running.thread()
    await running.sdk.runs.wait(thread, "refund", input=said(LOOK))
    before_tools = next(state for state in await checkpoints(running, thread) if state["next"] == ["tools"])

    values: Any = await running.sdk.runs.wait(thread, "refund", input=None, checkpoint=before_tools["checkpoint"])

    first, again = (await running.sdk.runs.list(thread))[::-1]
    assert contents(values)[-1].startswith("Done.")
    assert first["execution_id"] != again["execution_id"]  # type: ignore[typeddict-item]
    forked = [state for state in await checkpoints(running, thread) if state["metadata"]["source"] == "fork"]
    assert [state["parent_checkpoint"] for state in forked] == [before_tools["checkpoint"]]


async def test_an_old_question_is_asked_anew(running: Running) -> None:
    """Forked at an approval, the new branch asks for itself; the answer is for that question alone."""
    thread = await running.thread()
    first: Any = await running.sdk.runs.wait(thread, "refund", input=said(call("refund", order_id="o", amount_cents=1)))
    asking = next(state for state in await checkpoints(running, thread) if state["next"] == ["tools"])
    await running.sdk.runs.wait(thread, "refund", command={"resume": False})

    forked: Any = await running.sdk.runs.wait(
        thread, "refund", input=None, checkpoint_id=asking["checkpoint"]["checkpoint_id"]
    )

    (old,), (new,) = first["__interrupt__"], forked["__interrupt__"]
    assert old["value"]["arguments"] == new["value"]["arguments"]
    assert old["id"] != new["id"]
    paid: Any = await running.sdk.runs.wait(thread, "refund", command={"resume": {new["id"]: True}})
    assert paid["messages"][2]["status"] == "success"


async def test_messages_from_before_the_tools_leave_the_calls_uncalled(running: Running) -> None:
    """A call without a result gets one before the new message, so that the next model call is valid."""
    thread = await running.thread()
    await running.sdk.runs.wait(thread, "refund", input=said(LOOK))
    before_tools = next(state for state in await checkpoints(running, thread) if state["next"] == ["tools"])

    values: Any = await running.sdk.runs.wait(thread, "refund", input=said("hi"), checkpoint=before_tools["checkpoint"])

    assert [each["type"] for each in values["messages"]] == ["human", "ai", "tool", "human", "ai"]
    assert values["messages"][2]["status"] == "error"
    assert values["messages"][-1]["content"].startswith("You said: hi")


async def test_the_present_is_no_fork(running: Running) -> None:
    """Chat front ends send the checkpoint they look at; where the thread stands there, it just goes on."""
    thread = await running.thread()
    for text in ("first", "second"):
        state = await running.sdk.threads.get_state(thread)
        await running.sdk.runs.wait(thread, "chat", input=said(text), checkpoint=state["checkpoint"])

    history = await checkpoints(running, thread)
    assert [state["metadata"]["source"] for state in history] == ["input", "loop", "input", "loop"]
    assert len(await running.messages(thread)) == 4


async def test_an_answer_belongs_to_the_present(running: Running) -> None:
    """With the checkpoint that asks it is an answer; with an earlier one there is nothing to answer: 409."""
    thread = await running.thread()
    await running.sdk.runs.wait(thread, "refund", input=said(call("refund", order_id="o", amount_cents=1)))
    first, present = await checkpoints(running, thread)

    with pytest.raises(Exception, match="409"):
        await running.sdk.runs.wait(
            thread, "refund", command={"resume": True}, checkpoint_id=first["checkpoint"]["checkpoint_id"]
        )
    values: Any = await running.sdk.runs.wait(
        thread, "refund", command={"resume": True}, checkpoint=present["checkpoint"]
    )

    assert contents(values)[-1].startswith("Done.")


async def test_a_rolled_back_past_is_no_place_to_leave_from(running: Running) -> None:
    """Its checkpoints are gone with the run."""
    thread = await running.thread()
    await running.sdk.runs.wait(thread, "refund", input=said("first"))
    run = await running.sdk.runs.create(
        thread, "refund", input=said(call("lookup_order", order_id="o", delay_ms=60_000))
    )
    async for part in running.sdk.runs.join_stream(thread, run["run_id"], stream_mode="custom", last_event_id="0"):
        if part.event == "custom":
            break
    gone = (await checkpoints(running, thread))[-1]["checkpoint"]["checkpoint_id"]
    await running.sdk.runs.cancel(thread, run["run_id"], action="rollback", wait=True)

    with pytest.raises(Exception, match="404"):
        await running.sdk.runs.wait(thread, "refund", input=said("again"), checkpoint_id=gone)


async def test_a_stream_of_a_fork_begins_with_its_state(running: Running) -> None:
    """The first values are those of the place that the run left from."""
    thread = await running.thread()
    await running.sdk.runs.wait(thread, "chat", input=said("first"))
    await running.sdk.runs.wait(thread, "chat", input=said("second"))
    then = (await checkpoints(running, thread))[0]["checkpoint"]["checkpoint_id"]

    parts = [part async for part in running.sdk.runs.stream(thread, "chat", input=None, checkpoint_id=then)]

    assert [part.event for part in parts] == ["metadata", "values", "values"]
    assert [contents(part.data) for part in parts[1:]] == [
        ["first"],
        ["first", "You said: first\n(1 message in view)"],
    ]


async def _values(running: Running, thread_id: str) -> Any:
    return (await running.sdk.threads.get_state(thread_id))["values"]
