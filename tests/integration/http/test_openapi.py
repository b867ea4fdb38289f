"""/openapi.json: the API as a document, complete and behind the gate."""

from typing import Any

import pytest
from litestar.routes import HTTPRoute

from tests.support.api import Api
from threadmark.app.access import Scope, scope_needed

METHODS = {"get", "post", "put", "patch", "delete"}


@pytest.fixture
async def document(api: Api) -> dict[str, Any]:
    """The document as a reader gets it."""
    response = await api.call("GET", "/openapi.json", await api.key(Scope.READ))
    assert response.status_code == 200
    return dict(response.json())


def operations(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Operations by method and path."""
    return {
        (method, path): operation
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method in METHODS
    }


def references(part: Any) -> set[str]:
    """Every `$ref` inside."""
    if isinstance(part, dict):
        own = {part["$ref"]} if isinstance(part.get("$ref"), str) else set()
        return own.union(*(references(each) for each in part.values()))
    return set().union(*(references(each) for each in part)) if isinstance(part, list) else set()


async def test_every_route_is_in_the_document(api: Api, document: dict[str, Any]) -> None:
    """What can be called is described, and nothing else."""
    routes = {
        (method.lower(), route.path_format)
        for route in api.app.routes
        if isinstance(route, HTTPRoute)
        for handler in route.route_handlers
        for method in handler.http_methods
        if method != "OPTIONS"
    }

    assert routes == set(operations(document))


async def test_every_operation_says_what_it_is_and_what_it_needs(api: Api, document: dict[str, Any]) -> None:
    """A sentence, an id of its own, the scope, and the errors every caller meets."""
    found = operations(document)
    scopes = {
        (method.lower(), route.path_format): scope_needed(handler)
        for route in api.app.routes
        if isinstance(route, HTTPRoute)
        for handler in route.route_handlers
        for method in handler.http_methods
        if method != "OPTIONS"
    }

    assert len({each["operationId"] for each in found.values()}) == len(found)
    for name, operation in found.items():
        assert operation["description"], name
        assert operation.get("x-scope") == scopes[name], name
        assert (operation.get("security") == []) == (scopes[name] is None), name
        expected = {"400", "422", "429", "500"} | ({"401", "403"} if scopes[name] else set())
        expected |= {"404"} if "{" in name[1] else set()
        expected |= {"413", "415"} if "requestBody" in operation else set()
        assert expected <= operation["responses"].keys(), name
        assert any(status.startswith("2") for status in operation["responses"]), name


async def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    """A generator of clients can follow all of them."""
    schemas = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}

    assert references(document) <= schemas


async def test_bodies_are_closed(document: dict[str, Any]) -> None:
    """What the code refuses, the document forbids: an unknown member."""
    assert document["components"]["schemas"]["NewKey"]["additionalProperties"] is False
    assert "additionalProperties" not in document["components"]["schemas"]["ShownKey"]


async def test_the_document_needs_a_key_and_brings_no_page(api: Api, admin: str) -> None:
    """No page loads scripts from elsewhere, and no stranger reads the API's inventory."""
    assert (await api.call("GET", "/openapi.json")).status_code == 401
    for path in ("/schema", "/schema/openapi.json", "/docs", "/openapi.yaml", "/schema/swagger", "/"):
        assert (await api.call("GET", path, admin)).status_code == 404
