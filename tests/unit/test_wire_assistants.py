"""Agents as assistants: their graphs."""

import pytest

from threadmark.app.wire.conversations.assistant_schema import AssistantCount, assistant_to_wire, graph_of, matches
from threadmark.workers.agents.agent import ChatAgent
from threadmark.workers.agents.tools import Effect, tool


@tool(effect=Effect.PURE)
async def look(where: str) -> str:
    """Look there."""
    return where


def test_an_agent_with_tools_goes_round() -> None:
    """From the model to the tools and back, or to the end."""
    graph = graph_of(ChatAgent(name="a", tools=[look]))

    assert [node.id for node in graph.nodes] == ["__start__", "model", "tools", "__end__"]
    assert {(edge.source, edge.target, edge.conditional) for edge in graph.edges} == {
        ("__start__", "model", False),
        ("model", "tools", True),
        ("tools", "model", False),
        ("model", "__end__", True),
    }


def test_an_agent_without_tools_has_no_such_node() -> None:
    """Its only way is to the end."""
    graph = graph_of(ChatAgent(name="a"))

    assert [node.id for node in graph.nodes] == ["__start__", "model", "__end__"]
    assert [(edge.source, edge.target, edge.conditional) for edge in graph.edges] == [
        ("__start__", "model", False),
        ("model", "__end__", False),
    ]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (AssistantCount(), True),
        (AssistantCount(metadata={"created_by": "system"}), True),
        (AssistantCount(metadata={"created_by": "me"}), False),
        (AssistantCount(metadata={"owner": "system"}), False),
        (AssistantCount(graph_id="refund"), True),
        (AssistantCount(graph_id="Refund"), False),
        (AssistantCount(name="FUN"), True),
        (AssistantCount(name="chat"), False),
    ],
)
def test_all_that_is_named_holds(wanted: AssistantCount, found: bool) -> None:
    """Metadata by whole values, the name by a part of it."""
    assert matches(assistant_to_wire(ChatAgent(name="refund", version="7")), wanted) is found
