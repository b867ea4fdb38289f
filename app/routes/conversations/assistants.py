"""Assistants: the agents that this server offers, as the SDK dialect shows them."""

from typing import Annotated, Any

from litestar import Response, get, post
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, JSONBody, QueryParameter

from threadmark.app.access import Scope, needs
from threadmark.app.requests import dependencies
from threadmark.app.requests.answers import json_answer
from threadmark.app.resources import Resources
from threadmark.app.wire.conversations.assistant_schema import (
    AssistantCount,
    AssistantSearch,
    Graph,
    Schemas,
    ShownAssistant,
    assistant_to_wire,
    chosen,
    graph_of,
    matches,
    schemas_of,
)
from threadmark.app.wire.selected import selected
from threadmark.state import NotFound
from threadmark.workers.agents.agent import ChatAgent

__all__ = ["ROUTES"]

Xray = Annotated[bool | int, QueryParameter(name="xray", description="Changes nothing: there are no subgraphs.")]
Recurse = Annotated[bool, QueryParameter(name="recurse", description="Changes nothing: there are no subgraphs.")]
_FOUND = {200: ResponseSpec(selected(ShownAssistant), description="Assistants.", generate_examples=False)}


@post("/assistants/search", opt=needs(Scope.READ), status_code=200, responses=_FOUND)
async def find_assistants(
    resources: dependencies.Resources, data: JSONBody[AssistantSearch | None] = None
) -> Response[bytes]:
    """Assistants, in the order of the registry, or by `sort_by`; `X-Pagination-Next` is the next offset."""
    search = data or AssistantSearch()
    found = _found(resources, search)
    if search.sort_by is not None:
        found.sort(key=lambda each: (getattr(each, str(search.sort_by)), each.assistant_id))
    if search.sort_order == "desc":
        found.reverse()
    page = found[search.offset : search.offset + search.limit]
    headers = {"x-pagination-total": str(len(found))}
    if search.offset + search.limit < len(found):
        headers["x-pagination-next"] = str(search.offset + search.limit)
    return json_answer([chosen(each, search.select) for each in page], headers=headers)


@post("/assistants/count", opt=needs(Scope.READ), status_code=200)
async def count_assistants(resources: dependencies.Resources, data: JSONBody[AssistantCount | None] = None) -> int:
    """How many assistants there are of this kind."""
    return len(_found(resources, data or AssistantCount()))


@get("/assistants/{assistant_id:str}", opt=needs(Scope.READ))
async def read_assistant(assistant_id: FromPath[str], resources: dependencies.Resources) -> ShownAssistant:
    """An assistant, by its id or its name."""
    return assistant_to_wire(_agent(resources, assistant_id))


@get("/assistants/{assistant_id:str}/graph", opt=needs(Scope.READ))
async def read_graph(assistant_id: FromPath[str], resources: dependencies.Resources, xray: Xray = False) -> Graph:
    """How the assistant's journal looks as a graph: the node `model`, and `tools` if it has any."""
    return graph_of(_agent(resources, assistant_id))


@get("/assistants/{assistant_id:str}/schemas", opt=needs(Scope.READ))
async def read_schemas(assistant_id: FromPath[str], resources: dependencies.Resources) -> Schemas:
    """JSON schemas of the assistant's input, output and state."""
    return schemas_of(_agent(resources, assistant_id))


@get("/assistants/{assistant_id:str}/subgraphs", opt=needs(Scope.READ))
async def read_subgraphs(
    assistant_id: FromPath[str], resources: dependencies.Resources, recurse: Recurse = False
) -> dict[str, Any]:
    """None: a chat agent has no graphs inside."""
    _agent(resources, assistant_id)
    return {}


@get("/assistants/{assistant_id:str}/subgraphs/{namespace:str}", opt=needs(Scope.READ))
async def read_subgraph(
    assistant_id: FromPath[str], namespace: FromPath[str], resources: dependencies.Resources, recurse: Recurse = False
) -> dict[str, Any]:
    """None of that name either."""
    _agent(resources, assistant_id)
    return {}


def _found(resources: Resources, wanted: AssistantCount) -> list[ShownAssistant]:
    shown = [assistant_to_wire(agent) for agent in resources.wired.registry]
    return [each for each in shown if matches(each, wanted)]


def _agent(resources: Resources, assistant_id: str) -> ChatAgent:
    agent = resources.wired.registry.find(assistant_id)
    if agent is None:
        raise NotFound("Assistant", assistant_id)
    return agent


ROUTES = [find_assistants, count_assistants, read_assistant, read_graph, read_schemas, read_subgraphs, read_subgraph]
