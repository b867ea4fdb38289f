"""Assistants over HTTP: the agents of the registry, by name and by id."""

from typing import Any

import pytest

from tests.support.api import Api
from threadmark.app.access import Scope
from threadmark.workers.agents.agent import assistant_id_of

REFUND = assistant_id_of("refund")


@pytest.fixture
async def key(api: Api) -> str:
    """A key that reads."""
    return await api.key(Scope.READ)


async def test_the_agents_of_the_registry_are_listed(api: Api, key: str) -> None:
    """In its order, with the shape that clients of the dialect look for first."""
    response = await api.call("POST", "/assistants/search", key, json={"metadata": {"created_by": "system"}})

    assert [each["graph_id"] for each in response.json()] == ["chat", "refund", "memo"]
    assert response.json()[1]["assistant_id"] == REFUND
    assert (response.headers["x-pagination-total"], "x-pagination-next" in response.headers) == ("3", False)
    assert (await api.call("POST", "/assistants/count", key, json={"graph_id": "chat"})).json() == 1


async def test_pages_order_and_fields_are_asked_for(api: Api, key: str) -> None:
    """As for threads."""
    page = {"limit": 1, "sort_by": "name", "sort_order": "desc", "select": ["name"]}

    first = await api.call("POST", "/assistants/search", key, json=page)
    third = await api.call("POST", "/assistants/search", key, json={**page, "offset": 2})

    assert (first.json(), first.headers["x-pagination-next"]) == ([{"name": "refund"}], "1")
    assert (third.json(), "x-pagination-next" in third.headers) == ([{"name": "chat"}], False)


@pytest.mark.parametrize(
    "search", [{"limit": 0}, {"limit": 201}, {"offset": -1}, {"sort_by": "version"}, {"select": ["x"]}, {"owner": "me"}]
)
async def test_what_cannot_be_searched_for_is_refused(api: Api, key: str, search: dict[str, Any]) -> None:
    """422, and nothing is listed."""
    assert (await api.call("POST", "/assistants/search", key, json=search)).status_code == 422


@pytest.mark.parametrize(
    "path", ["", "/graph", "/graph?xray=true", "/graph?xray=2", "/schemas", "/subgraphs?recurse=true"]
)
async def test_a_name_and_an_id_lead_to_the_same(api: Api, key: str, path: str) -> None:
    """Clients use either."""
    by_name = await api.call("GET", f"/assistants/refund{path}", key)
    by_id = await api.call("GET", f"/assistants/{REFUND}{path}", key)

    assert (by_name.status_code, by_name.content) == (200, by_id.content)


async def test_the_schemas_say_what_a_run_takes(api: Api, key: str) -> None:
    """Messages, and nothing to configure."""
    schemas = (await api.call("GET", "/assistants/chat/schemas", key)).json()

    assert schemas["input_schema"]["required"] == ["messages"]
    assert schemas["config_schema"]["additionalProperties"] is False


@pytest.mark.parametrize("path", ["", "/graph", "/schemas", "/subgraphs", "/subgraphs/inner"])
@pytest.mark.parametrize("name", ["nope", "00000000-0000-4000-8000-000000000000"])
async def test_an_agent_is_every_tenants_and_a_made_up_one_nobodys(api: Api, key: str, path: str, name: str) -> None:
    """Agents belong to the server: who asks makes no difference, and what is not there is 404."""
    stranger = await api.key(Scope.READ, tenant_id="other")

    missing = await api.call("GET", f"/assistants/{name}{path}", stranger)
    shared = await api.call("GET", f"/assistants/chat{path}", stranger)

    assert (missing.status_code, missing.json()["detail"]) == (404, f"Assistant with ID {name} not found")
    assert shared.content == (await api.call("GET", f"/assistants/chat{path}", key)).content
