"""Assistants of the dialect: the agents of the registry, their graphs and the schemas of their state."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from threadmark.app.listing.pages import PAGE_SIZE_MAX
from threadmark.workers.agents.agent import ChatAgent, assistant_id_of

__all__ = [
    "AssistantCount",
    "AssistantField",
    "AssistantSearch",
    "Graph",
    "GraphEdge",
    "GraphNode",
    "Schemas",
    "ShownAssistant",
    "assistant_to_wire",
    "chosen",
    "graph_of",
    "matches",
    "schemas_of",
]

OFFSET_MAX = 1_000_000_000
AssistantField = Literal[
    "assistant_id",
    "graph_id",
    "name",
    "description",
    "config",
    "context",
    "created_at",
    "updated_at",
    "metadata",
    "version",
]
_METADATA = {"created_by": "system"}
# Agents are part of the server's code: no instant made them, and it is the same on every server.
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


class ShownAssistant(Struct):
    """An agent. `graph_id` and `name` are its name; every route takes the name and the `assistant_id`."""

    assistant_id: str
    graph_id: str
    name: str
    description: str | None
    metadata: dict[str, Any]
    version: int = 1
    config: dict[str, Any] = {}
    context: dict[str, Any] = {}
    created_at: datetime = _BEGINNING
    updated_at: datetime = _BEGINNING


class AssistantCount(Struct, forbid_unknown_fields=True):
    """Which assistants: all that is named holds. `name` is a part of the name, in any case."""

    metadata: dict[str, Any] | None = None
    graph_id: str | None = None
    name: str | None = None


class AssistantSearch(AssistantCount, forbid_unknown_fields=True):
    """A page of assistants."""

    limit: Annotated[int, Meta(ge=1, le=PAGE_SIZE_MAX)] = 10
    offset: Annotated[int, Meta(ge=0, le=OFFSET_MAX)] = 0
    sort_by: Literal["assistant_id", "graph_id", "name", "created_at", "updated_at"] | None = None
    sort_order: Literal["asc", "desc"] | None = None
    select: list[AssistantField] | None = None


class GraphNode(Struct):
    """A node of a graph."""

    id: str
    type: str
    data: dict[str, Any]


class GraphEdge(Struct, omit_defaults=True):
    """An edge of a graph; a conditional one is taken or not."""

    source: str
    target: str
    conditional: bool = False


class Graph(Struct):
    """What a chat agent's journal looks like as a graph."""

    nodes: list[GraphNode]
    edges: list[GraphEdge]


class Schemas(Struct):
    """JSON schemas of what a run takes and of what a thread holds."""

    graph_id: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    state_schema: dict[str, Any]
    config_schema: dict[str, Any]
    context_schema: dict[str, Any]


def assistant_to_wire(agent: ChatAgent) -> ShownAssistant:
    """The agent as an assistant; its own version, a text of its author's, is in the metadata."""
    return ShownAssistant(
        assistant_id=assistant_id_of(agent.name),
        graph_id=agent.name,
        name=agent.name,
        description=agent.description or None,
        metadata={**_METADATA, "version": agent.version},
    )


def matches(assistant: ShownAssistant, wanted: AssistantCount) -> bool:
    """Whether the assistant is wanted."""
    labels = wanted.metadata or {}
    return (
        all(key in assistant.metadata and assistant.metadata[key] == value for key, value in labels.items())
        and wanted.graph_id in (None, assistant.graph_id)
        and (wanted.name is None or wanted.name.casefold() in assistant.name.casefold())
    )


def chosen(assistant: ShownAssistant, fields: Sequence[AssistantField] | None) -> dict[str, Any]:
    """The assistant as plain JSON, with the chosen fields alone."""
    plain: dict[str, Any] = msgspec.to_builtins(assistant)
    return plain if fields is None else {name: plain[name] for name in plain if name in fields}


def graph_of(agent: ChatAgent) -> Graph:
    """The nodes `model` and, for an agent with tools, `tools`, between the start and the end."""
    nodes = [_node("__start__", "schema"), _node("model", "runnable")]
    edges = [GraphEdge("__start__", "model")]
    if agent.tools:
        nodes.append(_node("tools", "runnable"))
        edges += [GraphEdge("model", "tools", conditional=True), GraphEdge("tools", "model")]
    nodes.append(_node("__end__", "schema"))
    edges.append(GraphEdge("model", "__end__", conditional=bool(agent.tools)))
    return Graph(nodes=nodes, edges=edges)


def schemas_of(agent: ChatAgent) -> Schemas:
    """The schemas of the agent: every chat agent takes and holds messages, and has nothing to configure."""
    return Schemas(
        graph_id=agent.name,
        input_schema=_messages_schema("Input", required=True),
        output_schema=_messages_schema("Output", required=True),
        state_schema=_messages_schema("State", required=False),
        config_schema=_EMPTY_SCHEMA,
        context_schema=_EMPTY_SCHEMA,
    )


def _node(name: str, kind: str) -> GraphNode:
    return GraphNode(id=name, type=kind, data={"id": name, "name": name})


def _messages_schema(title: str, *, required: bool) -> dict[str, Any]:
    messages = {"title": "Messages", "type": "array", "items": _MESSAGE_SCHEMA}
    schema = {"title": title, "type": "object", "properties": {"messages": messages}}
    return {**schema, "required": ["messages"]} if required else schema


_EMPTY_SCHEMA: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
_TEXT_OR_BLOCKS = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}]}
_MESSAGE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "type": {"enum": ["human", "ai", "system", "tool"]},
        "content": _TEXT_OR_BLOCKS,
        "id": {"type": "string"},
        "name": {"type": ["string", "null"]},
        "tool_calls": {"type": "array", "items": {"type": "object"}},
        "tool_call_id": {"type": "string"},
    },
    "required": ["type", "content"],
}
