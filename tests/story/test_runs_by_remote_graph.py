"""An agent as the unmodified RemoteGraph runs it, from afar and as a node of another graph."""

from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.pregel.remote import RemoteException, RemoteGraph
from langgraph.types import Command

from tests.support.agent_server import Running, call, contents, said

LOOK = call("lookup_order", order_id="o")
PAY = call("refund", order_id="o", amount_cents=1)


def remote(running: Running, agent: str = "refund") -> RemoteGraph:
    """The agent, from afar."""
    return RemoteGraph(agent, client=running.sdk)


async def config(running: Running) -> RunnableConfig:
    """A new thread."""
    return {"configurable": {"thread_id": await running.thread()}}


async def test_it_is_invoked(running: Running) -> None:
    """With a thread, whose state it is then; and without one."""
    where = await config(running)

    values = await remote(running).ainvoke(said(LOOK), where)
    alone = await remote(running).ainvoke(said("hi"))

    assert [message["type"] for message in values["messages"]] == ["human", "ai", "tool", "ai"]
    assert values["messages"] == await running.messages(where["configurable"]["thread_id"])
    assert contents(alone)[0] == "hi"


async def test_it_is_streamed(running: Running) -> None:
    """Single modes and several; messages come as pairs, custom events as they were sent."""
    graph = remote(running)

    updates = [each async for each in graph.astream(said(LOOK), await config(running), stream_mode="updates")]
    custom: list[Any] = [
        each async for each in graph.astream(said(LOOK), await config(running), stream_mode=["custom", "values"])
    ]
    messages: list[Any] = [
        each async for each in graph.astream(said("hi"), await config(running), stream_mode="messages")
    ]

    assert [next(iter(each)) for each in updates] == ["model", "tools", "model"]
    assert [each[0] for each in custom] == ["values", "values", "custom", "values", "values"]
    chunks = [AIMessageChunk(**{**message, "type": "AIMessageChunk"}) for message, _ in messages]
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole = whole + chunk
    assert whole.content == "You said: hi\n(1 message in view)"
    assert whole.usage_metadata is not None
    assert whole.usage_metadata["total_tokens"] > 0


async def test_it_is_interrupted_and_resumed(running: Running) -> None:
    """The question comes as an interrupt; `Command(resume=…)` answers it."""
    where, graph = await config(running), remote(running)

    asked = await graph.ainvoke(said(PAY), where)
    snapshot = await graph.aget_state(where)
    answered = await graph.ainvoke(Command(resume=True), where)

    assert asked["__interrupt__"][0]["value"]["tool"] == "refund"
    assert [each.value for each in snapshot.interrupts] == [asked["__interrupt__"][0]["value"]]
    assert snapshot.next == ("tools",)
    assert contents(answered)[-1].startswith("Done.")
    assert "__interrupt__" not in answered


async def test_a_failure_is_raised(running: Running) -> None:
    """As the exception of its own."""
    where: RunnableConfig = {**await config(running), "recursion_limit": 1}

    with pytest.raises(RemoteException, match="BudgetExceeded"):
        await remote(running).ainvoke(said(LOOK), where)


async def test_it_is_a_node_of_another_graph(running: Running) -> None:
    """Called with messages of the caller's own classes; its reply is that node's reply."""
    where = await config(running)

    async def ask(state: MessagesState) -> Any:
        values = await remote(running, "chat").ainvoke({"messages": state["messages"]})
        return {"messages": [values["messages"][-1]]}

    outer = StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask").add_edge("ask", END).compile()
    values = await outer.ainvoke({"messages": [HumanMessage("hi", id="1")]}, where)

    assert [message.content for message in values["messages"]] == ["hi", "You said: hi\n(1 message in view)"]


async def test_it_stops_before_the_named_node(running: Running) -> None:
    """`interrupt_before`, then on."""
    where, graph = await config(running), remote(running)

    paused = await graph.ainvoke(said(LOOK), where, interrupt_before=["tools"])
    went_on = await graph.ainvoke(None, where)

    assert [message["type"] for message in paused["messages"]] == ["human", "ai"]
    assert [message["type"] for message in went_on["messages"]] == ["human", "ai", "tool", "ai"]
