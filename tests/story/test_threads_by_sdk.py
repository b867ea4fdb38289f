"""Threads as the unmodified SDK sees them, against a server of its own."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError

from tests.support.service import Service
from threadmark.app.access import Scope

NOWHERE = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
async def sdk(service: Service) -> AsyncIterator[LangGraphClient]:
    """The SDK's client, with a key that reads, runs and approves."""
    key = await service.new_key(Scope.READ, Scope.RUN, Scope.APPROVE)
    async with service.sdk(key) as client:
        yield client


async def talk(sdk: LangGraphClient, *lines: str, assistant: str = "chat") -> str:
    """A thread in which these lines were said, each answered; its id."""
    thread_id = (await sdk.threads.create())["thread_id"]
    for line in lines:
        await sdk.runs.wait(thread_id, assistant, input={"messages": line})
    return thread_id


def contents(state: Any) -> list[str]:
    """What was said."""
    return [message["content"] for message in state["values"]["messages"]]


async def test_a_thread_is_made_found_labelled_copied_and_deleted(sdk: LangGraphClient) -> None:
    """The life of a thread, by the client's own calls."""
    made = await sdk.threads.create(metadata={"user": "sdk-ada"}, graph_id="chat")
    thread_id = made["thread_id"]

    assert await sdk.threads.create(thread_id=thread_id, if_exists="do_nothing") == made
    assert [each["thread_id"] for each in await sdk.threads.search(metadata={"user": "sdk-ada"})] == [thread_id]
    assert await sdk.threads.count(metadata={"user": "sdk-ada"}) == 1
    labelled = await sdk.threads.update(thread_id, metadata={"mood": "good"})
    assert labelled["metadata"] == {"user": "sdk-ada", "graph_id": "chat", "mood": "good"}
    threads: Any = sdk.threads  # annotated as if some of its calls returned nothing
    assert await threads.update(thread_id, metadata={"mood": "better"}, return_minimal=True) is None
    assert (await threads.copy(thread_id))["metadata"]["mood"] == "better"
    await sdk.threads.delete(thread_id)
    with pytest.raises(NotFoundError, match=f"Thread with ID {thread_id} not found"):
        await sdk.threads.get(thread_id)


async def test_refusals_arrive_as_the_clients_own_errors(sdk: LangGraphClient) -> None:
    """With their sentence, their code and the request's id."""
    thread_id = (await sdk.threads.create())["thread_id"]

    with pytest.raises(ConflictError) as taken:
        await sdk.threads.create(thread_id=thread_id)
    with pytest.raises(UnprocessableEntityError, match="Invalid thread ID: must be a UUID"):
        await sdk.threads.get("not-a-uuid")
    with pytest.raises(UnprocessableEntityError):
        await sdk.threads.create(ttl=5)
    with pytest.raises(NotFoundError):
        await sdk.threads.get_state(NOWHERE)
    with pytest.raises(NotFoundError):
        await sdk.threads.get_history(NOWHERE)

    assert taken.value.code == "thread_exists"
    assert taken.value.request_id


async def test_a_conversation_is_read_back(sdk: LangGraphClient) -> None:
    """As values of the thread, as its state, and as a history: a checkpoint for the input, and one after each node."""
    thread_id = await talk(sdk, "hi", 'call add {"a": 1, "b": 2}')

    thread, state = await sdk.threads.get(thread_id), await sdk.threads.get_state(thread_id)
    history = await sdk.threads.get_history(thread_id, limit=20)

    assert (thread["status"], thread["interrupts"]) == ("idle", {})
    assert (thread["metadata"] or {})["graph_id"] == "chat"
    assert thread["values"] == state["values"]
    assert (state["next"], state["tasks"]) == ([], [])
    assert [(each["metadata"]["source"], each["metadata"]["step"]) for each in reversed(history)] == [
        ("input", -1),
        ("loop", 0),
        ("input", 1),
        ("loop", 2),
        ("loop", 3),
        ("loop", 4),
    ]
    assert [each["next"] for each in reversed(history)] == [["model"], [], ["model"], ["tools"], ["model"], []]
    parents = [each["parent_checkpoint"] for each in history]
    assert parents == [*(each["checkpoint"] for each in history[1:]), None]
    assert history[0]["checkpoint"] == state["checkpoint"]
    assert await sdk.threads.get_state(thread_id, checkpoint=history[3]["checkpoint"]) == history[3]
    assert (
        await sdk.threads.get_state(thread_id, checkpoint_id=str(history[3]["checkpoint"]["checkpoint_id"]))
        == history[3]
    )


async def test_an_old_checkpoint_is_forked_by_an_update_and_run_on(sdk: LangGraphClient) -> None:
    """Another question at the same place: the old branch stays in the history, the thread goes on on the new one."""
    thread_id = await talk(sdk, "one", "two")
    asked = next(each for each in await sdk.threads.get_history(thread_id) if contents(each)[-1] == "two")
    message = {**asked["values"]["messages"][-1], "content": "TWO"}  # type: ignore[call-overload]

    forked = await sdk.threads.update_state(thread_id, {"messages": [message]}, checkpoint=asked["checkpoint"])
    await sdk.runs.wait(thread_id, "chat", checkpoint_id=str(forked["checkpoint"]["checkpoint_id"]))

    said = contents(await sdk.threads.get_state(thread_id))
    assert [said[0], said[2]] == ["one", "TWO"]
    assert said[3].startswith("You said: TWO")
    history = await sdk.threads.get_history(thread_id, limit=50)
    assert any(contents(each)[-1].startswith("You said: two") for each in history)
    children = [each for each in history if each["parent_checkpoint"] == asked["checkpoint"]]
    assert len(children) == 2


async def test_a_busy_thread_takes_no_update(sdk: LangGraphClient) -> None:
    """A run moves it: 409, and the update is not kept for later."""
    thread_id = (await sdk.threads.create())["thread_id"]
    slow = 'call lookup_order {"order_id": "busy", "delay_ms": 60000}'
    run = await sdk.runs.create(thread_id, "refund", input={"messages": slow})

    with pytest.raises(ConflictError, match="already running"):
        await sdk.threads.update_state(thread_id, {"messages": ["and this"]})

    assert (await sdk.threads.get(thread_id))["status"] == "busy"
    await sdk.runs.cancel(thread_id, run["run_id"], wait=True)
    await sdk.threads.update_state(thread_id, {"messages": ["and this"]})
    assert contents(await sdk.threads.get_state(thread_id))[-1] == "and this"


async def test_a_deleted_thread_stops_its_run(service: Service, sdk: LangGraphClient) -> None:
    """The worker learns of it; nothing of the thread comes back."""
    thread_id = (await sdk.threads.create())["thread_id"]
    slow = 'call lookup_order {"order_id": "deleted", "delay_ms": 60000}'
    await sdk.runs.create(thread_id, "refund", input={"messages": slow})

    await sdk.threads.delete(thread_id)
    again = await sdk.threads.create(thread_id=thread_id)

    assert again["values"] is None
    assert await sdk.runs.list(thread_id) == []
    assert await sdk.threads.get_history(thread_id) == []


async def test_a_question_is_an_interrupt_of_the_node_tools(sdk: LangGraphClient) -> None:
    """Where chat front ends look for it: in the thread, in its state, and at its checkpoint in the history."""
    thread_id = await talk(sdk, 'call refund {"order_id": "asked", "amount_cents": 5}', assistant="refund")

    thread, state = await sdk.threads.get(thread_id), await sdk.threads.get_state(thread_id)
    latest = (await sdk.threads.get_history(thread_id, limit=1))[0]

    assert (thread["status"], state["next"]) == ("interrupted", ["tools"])
    (task,) = state["tasks"]
    assert (task["name"], thread["interrupts"]) == ("tools", {task["id"]: task["interrupts"]})
    assert state["interrupts"] == task["interrupts"]
    assert task["interrupts"][0]["value"]["tool"] == "refund"
    assert latest == state
    assert [each["thread_id"] for each in await sdk.threads.search(status="interrupted", ids=[thread_id])] == [
        thread_id
    ]


async def test_assistants_are_found_by_name_and_by_id(sdk: LangGraphClient) -> None:
    """With their graph and their schemas."""
    found = await sdk.assistants.search(metadata={"created_by": "system"})

    by_name = await sdk.assistants.get("refund")
    assert by_name in found
    assert await sdk.assistants.get(by_name["assistant_id"]) == by_name
    assert await sdk.assistants.count() == len(found)
    graph = await sdk.assistants.get_graph("refund", xray=True)
    assert [node["id"] for node in graph["nodes"]] == ["__start__", "model", "tools", "__end__"]
    schemas = await sdk.assistants.get_schemas("refund")
    assert schemas["input_schema"]
    assert await sdk.assistants.get_subgraphs("refund") == {}
    paged = await sdk.assistants.search(limit=1, response_format="object")
    assert paged["next"] == "1"
