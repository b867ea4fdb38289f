"""Streams of runs, in every mode, as the unmodified SDK receives them."""

from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk.errors import UnprocessableEntityError
from langgraph_sdk.schema import StreamPart

from tests.support.agent_server import Running, call, collect, contents, parallel, run_server, said

LOOK = call("lookup_order", order_id="o-1")
TWO_CHECKS = [
    parallel("lookup_order", order_id="o-1"),
    parallel("check_policy", order_id="o-1", amount_cents=5),
]


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    """A server with the example agents."""
    async with run_server(tmp_path) as running:
        yield running


def names(parts: list[StreamPart]) -> list[str]:
    """The events' names."""
    return [part.event for part in parts]


def of(parts: list[StreamPart], name: str) -> list[Any]:
    """The data of the events of that name."""
    return [part.data for part in parts if part.event == name]


async def test_values_are_the_default(running: Running) -> None:
    """First `metadata`, then the values after the input and after each node; no id unless the run is resumable."""
    thread = await running.thread()

    parts = await collect(running.sdk.runs.stream(thread, "refund", input=said(LOOK)))

    assert names(parts) == ["metadata", "values", "values", "values", "values"]
    run_id = parts[0].data["run_id"]
    assert parts[0].data == {"run_id": run_id, "attempt": 1}
    assert [part.id for part in parts] == [None] * 5
    assert [[message["type"] for message in each["messages"]] for each in of(parts, "values")] == [
        ["human"],
        ["human", "ai"],
        ["human", "ai", "tool"],
        ["human", "ai", "tool", "ai"],
    ]
    assert of(parts, "values")[-1]["messages"] == await running.messages(thread)


async def test_updates_name_the_node(running: Running) -> None:
    """What each node added: replies of `model`, results of `tools`, those of parallel calls together."""
    parts = await collect(
        running.sdk.runs.stream(await running.thread(), "refund", input=said(*TWO_CHECKS), stream_mode="updates")
    )

    assert names(parts) == ["metadata", "updates", "updates", "updates"]
    assert [list(each) for each in of(parts, "updates")] == [["model"], ["tools"], ["model"]]
    results = of(parts, "updates")[1]["tools"]["messages"]
    assert [message["name"] for message in results] == ["lookup_order", "check_policy"]


async def test_messages_tuple_streams_every_word(running: Running) -> None:
    """Chunks join to the reply; tool results come as messages; each with where it came from."""
    parts = await collect(
        running.sdk.runs.stream(
            await running.thread(), "refund", input=said(LOOK), stream_mode="messages-tuple", metadata={"mark": 1}
        )
    )

    assert set(names(parts)) == {"metadata", "messages"}
    pairs = of(parts, "messages")
    replies: dict[str, str] = {}
    for message, _ in pairs:
        if message["type"] == "AIMessageChunk":
            replies[message["id"]] = replies.get(message["id"], "") + message["content"]
    assert [text[:5] for text in replies.values()] == ["", "Done."]
    assert len(pairs) > len(replies) + 1, "the last reply came word by word"
    (asked,) = [message for message, _ in pairs if message.get("tool_call_chunks")]
    assert [each["name"] for each in asked["tool_call_chunks"]] == ["lookup_order"]
    (result,) = [message for message, _ in pairs if message["type"] == "tool"]
    assert result["tool_call_id"] == asked["tool_calls"][0]["id"]
    assert {metadata["langgraph_node"] for _, metadata in pairs} == {"model", "tools"}
    assert {(metadata["mark"], metadata["graph_id"]) for _, metadata in pairs} == {(1, "refund")}


async def test_messages_grow(running: Running) -> None:
    """`messages`: announced, then longer and longer, then complete."""
    parts = await collect(
        running.sdk.runs.stream(await running.thread(), "chat", input=said("one two"), stream_mode="messages")
    )

    assert names(parts)[:2] == ["metadata", "messages/metadata"]
    assert names(parts)[-1] == "messages/complete"
    grown = [each[0]["content"] for each in of(parts, "messages/partial")]
    assert all(later.startswith(earlier) and later != earlier for earlier, later in pairwise(grown))
    assert of(parts, "messages/complete")[0][0]["content"] == grown[-1]
    assert list(of(parts, "messages/metadata")[0]) == [of(parts, "messages/complete")[0][0]["id"]]


async def test_custom_events_come_from_tools(running: Running) -> None:
    """What a tool emits, while it runs."""
    parts = await collect(
        running.sdk.runs.stream(await running.thread(), "refund", input=said(LOOK), stream_mode=["custom"])
    )

    assert of(parts, "custom") == [{"effect": "lookup_order", "attempt": 1}]


async def test_modes_are_combined(running: Running) -> None:
    """All of them in one stream, in the order in which things happened: what streams, what changed, what is."""
    parts = await collect(
        running.sdk.runs.stream(
            await running.thread(),
            "refund",
            input=said(LOOK),
            stream_mode=["values", "updates", "messages", "messages-tuple", "custom"],
            stream_subgraphs=True,
        )
    )

    event_names = names(parts)
    assert set(event_names) == {
        "metadata",
        "values",
        "updates",
        "messages",
        "messages/metadata",
        "messages/partial",
        "messages/complete",
        "custom",
    }
    first_reply = event_names.index("messages/complete")
    assert event_names[first_reply : first_reply + 4] == ["messages/complete", "updates", "values", "custom"]


@pytest.mark.parametrize("mode", ["debug", "events", "tasks", "checkpoints", "lifecycle"])
async def test_another_mode_is_refused(running: Running, mode: Any) -> None:
    """422, alone and among others, when a run is started and when it is joined; nothing is run."""
    thread = await running.thread()
    for modes in (mode, ["values", mode]):
        with pytest.raises(UnprocessableEntityError):
            await collect(running.sdk.runs.stream(thread, "chat", input=said("hi"), stream_mode=modes))
    assert await running.sdk.runs.list(thread) == []

    run = await running.sdk.runs.create(thread, "chat", input=said("hi"))
    with pytest.raises(UnprocessableEntityError):
        await collect(running.sdk.runs.join_stream(thread, run["run_id"], stream_mode=mode))


async def test_a_failure_is_an_error_event_and_a_wait_answers_it(running: Running) -> None:
    """The stream's last event says why; a wait answers 200 with `__error__`; thread and run say so too."""
    thread = await running.thread()

    parts = await collect(running.sdk.runs.stream(thread, "refund", input=said(LOOK), config={"recursion_limit": 1}))
    answer: Any = await running.sdk.runs.wait(
        thread, "refund", input=said(LOOK), config={"recursion_limit": 1}, raise_error=False
    )

    assert names(parts)[-1] == "error"
    assert parts[-1].data == {"error": "BudgetExceeded", "message": "The run used its 1 steps."}
    assert answer == {"__error__": parts[-1].data}
    runs = await running.sdk.runs.list(thread)
    assert [(run["status"], run["reason"]) for run in runs] == [("error", "steps")] * 2  # type: ignore[typeddict-item]
    assert (await running.sdk.threads.get(thread))["status"] == "error"


async def test_the_run_has_ended_before_its_stream_closes(running: Running) -> None:
    """Clients ask for the status when a stream closes; a run that seems to go on would bring them back."""
    for text in ["hi", LOOK, call("refund", order_id="o", amount_cents=1)]:
        thread = await running.thread()
        parts = await collect(running.sdk.runs.stream(thread, "refund", input=said(text)))
        run = await running.sdk.runs.get(thread, parts[0].data["run_id"])
        assert run["status"] == "success"


async def test_a_text_cannot_speak_for_the_protocol(running: Running) -> None:
    """A carriage return, a line separator, a NUL: one event with the identical text, no event or id of its making."""
    text = "a\rdata: x\nevent: done\n\nid: 9\r\n\u2028\u2029\u0085\x00\x0b end"
    thread = await running.thread()

    parts = await collect(
        running.sdk.runs.stream(
            thread, "chat", input=said(text), stream_mode=["values", "messages-tuple"], stream_resumable=True
        )
    )

    assert set(names(parts)) == {"metadata", "values", "messages"}
    assert "9" not in {part.id for part in parts}
    assert contents(of(parts, "values")[-1]) == [text, f"You said: {text}\n(1 message in view)"]
    assert "".join(message["content"] for message, _ in of(parts, "messages")) == contents(of(parts, "values")[-1])[-1]


async def test_the_answer_says_where_its_run_is(running: Running) -> None:
    """`Content-Location` names the run, `Location` where a client that is cut off goes on; nothing is cached."""
    thread = await running.thread()
    body = {"assistant_id": "chat", "input": said("hi")}
    async with running.http() as http:
        streamed = await http.post(f"/threads/{thread}/runs/stream", json=body)
        waited = await http.post(f"/threads/{thread}/runs/wait", json=body)
        created = await http.post(f"/threads/{thread}/runs", json=body)
        joined = await http.get(f"{created.headers['content-location']}/join")

    run = streamed.headers["content-location"]
    assert run.startswith(f"/threads/{thread}/runs/")
    assert streamed.headers["location"] == f"{run}/stream"
    assert streamed.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert (streamed.headers["cache-control"], streamed.headers["x-accel-buffering"]) == ("no-store", "no")
    assert waited.headers["location"] == f"{waited.headers['content-location']}/join"
    assert waited.headers["content-type"] == joined.headers["content-type"] == "application/json"
    assert created.headers["content-location"] == f"/threads/{thread}/runs/{created.json()['run_id']}"
    assert "location" not in created.headers
    assert len(contents(joined.json())) == 6
