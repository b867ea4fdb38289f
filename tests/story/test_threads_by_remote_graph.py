"""A thread as the unmodified RemoteGraph sees it: its state, its history, updates, its graph."""

from collections.abc import AsyncIterator

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.pregel.remote import RemoteGraph
from langgraph.types import Command
from langgraph_sdk.client import LangGraphClient

from tests.support.service import Service


@pytest.fixture
async def sdk(service: Service) -> AsyncIterator[LangGraphClient]:
    """The client beneath."""
    async with service.sdk() as client:
        yield client


@pytest.fixture
def graph(sdk: LangGraphClient) -> RemoteGraph:
    """The refund agent, from afar."""
    return RemoteGraph("refund", client=sdk)


@pytest.fixture
async def config(sdk: LangGraphClient) -> RunnableConfig:
    """A new thread."""
    return {"configurable": {"thread_id": (await sdk.threads.create())["thread_id"]}}


async def test_the_graph_has_the_nodes_of_a_chat_agent(graph: RemoteGraph) -> None:
    """It can be drawn."""
    drawn = await graph.aget_graph()

    assert list(drawn.nodes) == ["__start__", "model", "tools", "__end__"]
    assert {(edge.source, edge.target) for edge in drawn.edges} == {
        ("__start__", "model"),
        ("model", "tools"),
        ("tools", "model"),
        ("model", "__end__"),
    }
    assert "model" in drawn.draw_mermaid()


async def test_messages_of_its_own_classes_are_written_and_read(graph: RemoteGraph, config: RunnableConfig) -> None:
    """Added, replaced by id, removed; each update is a checkpoint."""
    await graph.aupdate_state(config, {"messages": [HumanMessage("hello", id="1"), AIMessage("hi", id="2")]})
    await graph.aupdate_state(config, {"messages": [HumanMessage("HELLO", id="1"), RemoveMessage(id="2")]})

    snapshot = await graph.aget_state(config)
    history = [each async for each in graph.aget_state_history(config)]

    assert [message["content"] for message in snapshot.values["messages"]] == ["HELLO"]
    assert snapshot.next == ("model",)
    assert history[0] == snapshot
    assert [len(each.values["messages"]) for each in history] == [1, 2]
    assert history[0].parent_config == history[1].config


async def test_a_snapshot_leads_back_to_its_state_and_its_past(graph: RemoteGraph, config: RunnableConfig) -> None:
    """Its config names a checkpoint, which is sent back as it came."""
    for text in ("one", "two", "three"):
        await graph.aupdate_state(config, {"messages": [HumanMessage(text)]})
    newest, middle, oldest = [each async for each in graph.aget_state_history(config, limit=3)]

    assert await graph.aget_state(middle.config) == middle
    assert [each async for each in graph.aget_state_history(config, before=middle.config)] == [oldest]
    assert [each async for each in graph.aget_state_history(config, filter={"step": 1})] == [newest]
    forked = await graph.aupdate_state(oldest.config, {"messages": [HumanMessage("other")]})
    assert (await graph.aget_state(forked)).parent_config == oldest.config


async def test_an_approval_is_seen_and_given(graph: RemoteGraph, config: RunnableConfig) -> None:
    """A run stops with an interrupt; a resume goes on, and nothing is asked any more."""
    text = 'call refund {"order_id": "remote", "amount_cents": 5}'
    stopped = await graph.ainvoke({"messages": [{"role": "user", "content": text}]}, config)
    asked = await graph.aget_state(config)
    ended = await graph.ainvoke(Command(resume=True), config)
    after = await graph.aget_state(config)

    assert "__interrupt__" in stopped
    assert [interrupt.value["tool"] for interrupt in asked.interrupts] == ["refund"]
    assert asked.next == ("tools",)
    assert ended["messages"][-1]["content"].startswith("Done.")
    assert (after.interrupts, after.next) == ((), ())
