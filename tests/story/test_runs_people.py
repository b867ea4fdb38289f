"""Runs that ask a person: how the question shows, who may answer, and that one answer counts."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk.errors import ConflictError

from tests.support.agent_server import Running, call, collect, contents, parallel, said
from tests.support.waiting import wait_until

PAY = call("refund", order_id="o", amount_cents=100)
CLIENT_COUNT = 20


def effects(running: Running) -> list[str]:
    """The calls that reached the outside world."""
    path = Path(running.live.resources.settings.data_dir) / "effects.jsonl"
    return [json.loads(line)["tool"] for line in path.read_text().splitlines()] if path.exists() else []


async def asking(running: Running, *lines: str) -> tuple[str, list[dict[str, Any]]]:
    """A thread whose run has asked, and what it asks."""
    thread = await running.thread()
    values: Any = await running.sdk.runs.wait(thread, "refund", input=said(*(lines or (PAY,))))
    return thread, values["__interrupt__"]


async def test_a_question_shows_everywhere(running: Running) -> None:
    """In the wait's answer, in the stream, in the thread and in its state: one question, the same everywhere."""
    thread, (asked,) = await asking(running)

    assert asked["value"]["tool"] == "refund"
    assert asked["value"]["arguments"] == {"order_id": "o", "amount_cents": 100}
    assert asked["value"]["kind"] == "approval"
    (run,) = await running.sdk.runs.list(thread)
    assert run["status"] == "success"
    shown = await running.sdk.threads.get(thread)
    assert shown["status"] == "interrupted"
    assert [each for task in shown["interrupts"].values() for each in task] == [asked]
    state = await running.sdk.threads.get_state(thread)
    assert (state["next"], state["tasks"][0]["interrupts"]) == (["tools"], [asked])
    parts = await collect(
        running.sdk.runs.join_stream(thread, run["run_id"], stream_mode=["values", "updates"], last_event_id="0")
    )
    assert [part.event for part in parts[-2:]] == ["updates", "values"]
    assert parts[-2].data["__interrupt__"] == parts[-1].data["__interrupt__"] == [asked]
    assert await running.sdk.runs.join(thread, run["run_id"]) == parts[-1].data
    assert effects(running) == []


@pytest.mark.parametrize(
    ("answer", "is_made"),
    [(True, True), (False, False), ({"approve": True}, True), ({"approve": False, "reason": "too much"}, False)],
)
async def test_an_answer_makes_or_refuses_the_call(running: Running, answer: Any, is_made: bool) -> None:
    """A new run goes on with the same execution; the question is closed."""
    thread, _ = await asking(running)

    values: Any = await running.sdk.runs.wait(thread, "refund", command={"resume": answer})

    assert "__interrupt__" not in values
    assert effects(running) == (["refund"] if is_made else [])
    result = values["messages"][2]
    assert result["status"] == ("success" if is_made else "error")
    assert isinstance(answer, bool) or "reason" not in answer or answer["reason"] in result["content"]
    later, earlier = await running.sdk.runs.list(thread)
    assert later["execution_id"] == earlier["execution_id"]  # type: ignore[typeddict-item]
    assert (await running.sdk.threads.get(thread))["status"] == "idle"


async def test_two_questions_are_answered_one_by_one(running: Running) -> None:
    """By interrupt id, in any order; one answer for several questions is refused; an open one is asked again."""
    thread, asked = await asking(
        running,
        parallel("refund", order_id="a", amount_cents=1),
        parallel("refund", order_id="b", amount_cents=2),
    )
    first, second = asked
    with pytest.raises(Exception, match="422"):
        await running.sdk.runs.wait(thread, "refund", command={"resume": True})

    left: Any = await running.sdk.runs.wait(thread, "refund", command={"resume": {second["id"]: True}})
    assert left["__interrupt__"] == [first]
    values: Any = await running.sdk.runs.wait(thread, "refund", command={"resume": {first["id"]: False}})

    refused, paid = values["messages"][2:4]
    assert (refused["status"], paid["status"]) == ("error", "success")
    assert effects(running) == ["refund"]


async def test_a_stale_answer_is_refused(running: Running) -> None:
    """An id that is not asked (any more) answers nothing, also where one other question is open."""
    thread, (first,) = await asking(running)
    await running.sdk.runs.wait(thread, "refund", command={"resume": False})
    values: Any = await running.sdk.runs.wait(thread, "refund", input=said(PAY))

    with pytest.raises(ConflictError):
        await running.sdk.runs.create(thread, "refund", command={"resume": {first["id"]: True}})

    state = await running.sdk.threads.get_state(thread)
    assert state["tasks"][0]["interrupts"] == values["__interrupt__"]
    assert effects(running) == []


async def test_of_twenty_resumes_one_wins(running: Running) -> None:
    """Half with one key, half without: one continuation, one effect; equal keys get one answer, others 409."""
    thread, _ = await asking(running)
    body = {"assistant_id": "refund", "command": {"resume": True}}
    barrier = asyncio.Barrier(CLIENT_COUNT)

    async def resume(number: int) -> Any:
        async with running.http() as http:
            await http.get("/ok")
            await barrier.wait()
            headers = {"idempotency-key": "k1"} if number % 2 else {}
            return number % 2, await http.post(f"/threads/{thread}/runs", json=body, headers=headers)

    answers = await asyncio.gather(*(resume(number) for number in range(CLIENT_COUNT)))
    newest = (await running.sdk.runs.list(thread))[0]["run_id"]
    await running.sdk.runs.join(thread, newest)

    accepted = [(keyed, answer) for keyed, answer in answers if answer.status_code == 200]
    assert {answer.status_code for _, answer in answers} <= {200, 409}
    assert {answer.json()["run_id"] for _, answer in accepted} == {newest}
    assert len([answer for keyed, answer in accepted if not keyed]) <= 1
    assert len(accepted) in (1, CLIENT_COUNT // 2)
    assert len(await running.sdk.runs.list(thread)) == 2
    assert effects(running) == ["refund"]


async def test_new_input_closes_an_open_question(running: Running) -> None:
    """New input closes the question: the call gets a result, and the answer to it comes too late."""
    thread, (asked,) = await asking(running)

    values: Any = await running.sdk.runs.wait(thread, "refund", input=said("never mind"))

    assert contents(values)[-1].startswith("You said: never mind")
    assert [message["type"] for message in values["messages"]] == ["human", "ai", "tool", "human", "ai"]
    with pytest.raises(ConflictError):
        await running.sdk.runs.create(thread, "refund", command={"resume": {asked["id"]: True}})


async def test_going_on_without_an_answer_asks_again(running: Running) -> None:
    """A run with nothing to add ends at the same question and streams it to its own reader."""
    thread, asked = await asking(running)

    parts = await collect(running.sdk.runs.stream(thread, "refund", input=None, stream_mode=["updates", "values"]))

    assert [part.event for part in parts] == ["metadata", "values", "updates", "values"]
    assert parts[-1].data["__interrupt__"] == parts[-2].data["__interrupt__"] == asked


async def test_a_pause_stops_before_or_after_a_node(running: Running) -> None:
    """`interrupt_before` and `interrupt_after`: the run ends there; one without input goes on from there."""
    thread = await running.thread()
    look = said(call("lookup_order", order_id="o"))

    before = await collect(
        running.sdk.runs.stream(thread, "refund", input=look, interrupt_before=["tools"], stream_mode="updates")
    )
    assert (await running.sdk.threads.get(thread))["status"] == "interrupted"
    assert (await running.sdk.threads.get_state(thread))["next"] == ["tools"]
    assert effects(running) == []
    after = await collect(
        running.sdk.runs.stream(thread, "refund", input=None, interrupt_after=["tools"], stream_mode="updates")
    )
    assert (await running.sdk.threads.get_state(thread))["next"] == ["model"]
    rest: Any = await running.sdk.runs.wait(thread, "refund", input=None, interrupt_before="*")

    def updates(parts: Any) -> list[str]:
        return [next(iter(part.data)) for part in parts if part.event == "updates"]

    assert updates(before) == ["model", "__interrupt__"]
    assert updates(after) == ["tools", "__interrupt__"]
    assert contents(rest)[-1].startswith("Done.")
    assert (await running.sdk.threads.get(thread))["status"] == "idle"


async def test_a_step_in_doubt_ends_the_stream_but_not_the_run(running: Running) -> None:
    """A worker dies in a call that must not be made twice: joins and streams end with the question, and so do clients.

    When it is settled the run goes on by itself, and its stream is taken up where it was left.
    """
    thread, _ = await asking(running, call("refund", order_id="o", amount_cents=100, delay_ms=60_000))
    resumed = await running.sdk.runs.create(
        thread, "refund", command={"resume": True}, stream_mode=["values", "updates"], stream_resumable=True
    )
    run_id = resumed["run_id"]
    await wait_until(lambda: effects(running) == ["refund"], description="the call to reach the outside world")
    # As if the process had died: the turn is abandoned in the middle of its effect, and taken up by another turn.
    worker = running.live.resources.wired.worker
    assert worker is not None
    worker.let_go()

    values: Any = await running.sdk.runs.join(thread, run_id)
    parts = await collect(running.sdk.runs.join_stream(thread, run_id, last_event_id="0"))

    assert values["__interrupt__"][0]["value"]["kind"] == "in_doubt"
    assert [part.event for part in parts[-3:]] == ["updates", "values", "end"]
    assert parts[-2].data == values
    assert parts[-1].data == {"run_id": run_id, "status": "pending"}
    shown: Any = await running.sdk.runs.get(thread, run_id)
    assert (shown["status"], shown["parked"]) == ("pending", "in_doubt")
    assert (await running.sdk.threads.get(thread))["status"] == "interrupted"
    assert await collect(running.sdk.runs.join_stream(thread, run_id)) == [parts[-1]._replace(id=None)]

    last_id = parts[-2].id
    step = values["__interrupt__"][0]["value"]["step_key"]
    async with running.http() as http:
        answer = await http.post(f"/runs/{run_id}/steps/{step}/resolve", json={"outcome": "happened", "result": "paid"})
        assert answer.status_code == 200, answer.text
    rest = await collect(running.sdk.runs.join_stream(thread, run_id, last_event_id=last_id))
    final: Any = await running.sdk.runs.join(thread, run_id)

    assert (await running.sdk.runs.get(thread, run_id))["status"] == "success"
    assert contents(final)[2] == "paid"
    assert rest[-1].data == final
    assert effects(running) == ["refund"]
