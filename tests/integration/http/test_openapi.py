"""/openapi.json: the API as a document, complete and behind the gate."""

import json
import re
from typing import Any

import pytest
from litestar.routes import HTTPRoute

from tests.support.api import Api
from tests.support.json_schema import faults
from threadmark.app.access import Scope, scope_needed
from threadmark.app.openapi.document import EXAMPLES

JSON = "application/json"
NOBODY = "00000000-0000-4000-8000-000000000000"
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

    for unique in ("operationId", "summary"):
        assert len({each[unique] for each in found.values()}) == len(found)
    for name, operation in found.items():
        assert operation["description"], name
        assert operation.get("x-scope") == scopes[name], name
        assert (operation.get("security") == []) == (scopes[name] is None), name
        expected = {"400", "422", "500"} | ({"401", "403", "429"} if scopes[name] else set())
        expected |= {"404"} if "{" in name[1] else set()
        expected |= {"503"} if scopes[name] else set()
        expected |= {"413", "415"} if JSON in operation.get("requestBody", {}).get("content", {}) else set()
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


async def test_every_schema_has_a_title_of_its_own(document: dict[str, Any]) -> None:
    """A generator of clients names its classes by titles; two of one name would be one class."""
    schemas = document["components"]["schemas"]

    assert {name: schema.get("title") for name, schema in schemas.items()} == {name: name for name in schemas}


@pytest.mark.parametrize(
    ("method", "path", "statuses"),
    [
        ("post", "/threads", {"409"}),
        ("post", "/threads/{thread_id}/runs", {"404", "409", "429"}),
        ("post", "/runs/wait", {"404", "409", "429"}),
        ("delete", "/threads/{thread_id}/runs/{run_id}", {"404", "409"}),
        ("put", "/compaction-policies/{name}", {"201", "412", "429"}),
        ("delete", "/compaction-policies/{name}", {"404", "412"}),
        ("patch", "/threads/{thread_id}", {"204"}),
        ("get", "/ready", {"503"}),
        ("post", "/memories/import", {"413"}),
    ],
)
async def test_an_operation_documents_the_statuses_that_it_alone_has(
    document: dict[str, Any], method: str, path: str, statuses: set[str]
) -> None:
    """What gets in the way of a change, a condition that fails, and answers without a body."""
    assert statuses <= document["paths"][path][method]["responses"].keys()


async def test_a_refusal_has_the_shape_of_all_refusals(document: dict[str, Any]) -> None:
    """And one that is worth another try says when."""
    for name, operation in operations(document).items():
        for status, answer in operation["responses"].items():
            if status >= "400" and name != ("get", "/ready"):
                (content,) = answer["content"].values()
                assert content["schema"] == {"$ref": "#/components/schemas/Problem"}, name
                assert ("Retry-After" in answer.get("headers", {})) == (status in {"429", "503"}), name


async def test_what_is_no_json_says_so(document: dict[str, Any]) -> None:
    """Streams are `text/event-stream`, archives are JSON lines in both directions."""
    media_types = {
        operation["operationId"]: next(iter(operation["responses"]["200"]["content"]))
        for operation in operations(document).values()
        if "content" in operation["responses"].get("200", {})
    }

    assert {name: kind for name, kind in media_types.items() if kind != JSON} == {
        "metrics": "text/plain",
        "stream_run": "text/event-stream",
        "stream_stateless_run": "text/event-stream",
        "join_run_stream": "text/event-stream",
        "follow_job": "text/event-stream",
        "export_memories": "application/x-ndjson",
        "export_ledger": "application/x-ndjson",
    }
    lines = document["paths"]["/memories/import"]["post"]["requestBody"]
    assert list(lines["content"]) == ["application/x-ndjson"]


async def test_a_body_that_may_be_left_out_is_optional(api: Api, admin: str, document: dict[str, Any]) -> None:
    """The document calls optional what the code does."""
    optional = {
        path
        for (_, path), operation in operations(document).items()
        if operation.get("requestBody", {}).get("required") is False
    }

    assert {"/threads", "/threads/search", "/threads/count", "/assistants/search", "/assistants/count"} <= optional
    for path in optional:
        answer = await api.call("POST", path.format(thread_id=NOBODY, segment_id="s-1"), admin)
        assert answer.status_code == (404 if "{" in path else 200), path
    refused = await api.call("POST", f"/threads/{NOBODY}/runs", admin)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_body")


async def test_selected_rows_may_lack_any_member(document: dict[str, Any]) -> None:
    """A client that selects one member would fail over those that it did not ask for."""
    schemas = document["components"]["schemas"]

    for path, method, name in (
        ("/threads/search", "post", "Thread"),
        ("/assistants/search", "post", "Assistant"),
        ("/threads/{thread_id}/runs", "get", "Run"),
    ):
        rows = document["paths"][path][method]["responses"]["200"]["content"][JSON]["schema"]
        assert rows == {"type": "array", "items": {"$ref": f"#/components/schemas/Selected{name}"}}
        assert schemas[f"Selected{name}"]["properties"].keys() == schemas[f"Shown{name}"]["properties"].keys()
        assert schemas[f"Selected{name}"]["required"] == []


async def test_texts_with_a_form_say_which(document: dict[str, Any]) -> None:
    """Ids, instants, digests and names."""
    run = document["components"]["schemas"]["ShownRun"]["properties"]
    policy = document["paths"]["/compaction-policies/{name}"]["put"]["parameters"]
    thread = document["paths"]["/threads/{thread_id}"]["get"]["parameters"]

    assert run["run_id"]["format"] == "uuid"
    assert run["created_at"]["format"] == "date-time"
    assert document["components"]["schemas"]["ShownWait"]["properties"]["shown_digest"]["pattern"] == "^[0-9a-f]{64}$"
    assert document["components"]["schemas"]["RunBody"]["properties"]["assistant_id"] == {"type": "string"}
    assert [each["schema"] for each in thread] == [{"type": "string", "format": "uuid"}]
    assert [each["schema"]["pattern"] for each in policy if each["name"] == "name"]


async def test_examples_are_as_their_schemas_say(document: dict[str, Any]) -> None:
    """They were recorded of a server: one that a changed shape left behind is recorded anew."""
    schemas, shown = document["components"]["schemas"], 0
    for name, operation in operations(document).items():
        bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
        for content in (each for body in bodies for each in body.get("content", {}).values()):
            if "example" in content:
                shown += 1
                assert list(faults(content["example"], content["schema"], schemas, closed=True)) == [], name

    assert shown >= 50


async def test_every_example_is_one_of_an_operation(document: dict[str, Any]) -> None:
    """None is left of what is not there any more."""
    examples = json.loads(EXAMPLES.read_bytes())

    assert examples.keys() <= {each["operationId"] for each in operations(document).values()}
    assert {"create_thread", "create_run", "answer", "remember", "recall", "compact_thread"} <= examples.keys()


async def test_a_refusal_lists_every_enumeration_of_a_query(api: Api, document: dict[str, Any]) -> None:
    """What the document lists is what the refusal lists."""
    key = await api.key(Scope.ADMIN, Scope.OPERATOR)
    asked: list[str] = []
    for (method, path), operation in operations(document).items():
        for parameter in operation.get("parameters", ()):
            allowed = _allowed(parameter["schema"], document)
            if allowed:
                place = re.sub(r"\{[^}]+\}", NOBODY, path)
                needed = {each["name"]: "x" for each in operation["parameters"] if each["required"]}
                query = {name: value for name, value in needed.items() if f"{{{name}}}" not in path}
                body: dict[str, Any] = {"json": {}} if "requestBody" in operation else {}
                answer = await api.call(
                    method.upper(), place, key, params={**query, parameter["name"]: "nonsense"}, **body
                )
                assert answer.status_code == 422, (path, parameter["name"], answer.text)
                assert answer.json()["path"] == parameter["name"]
                assert [each for each in allowed if each not in answer.json()["detail"]] == [], path
                asked.append(parameter["name"])
    assert {"class", "reason", "status", "unit", "role", "select", "stream_mode", "action", "include"} <= set(asked)


async def test_a_refusal_lists_every_enumeration_of_a_body(api: Api, document: dict[str, Any]) -> None:
    """What the document lists is what the refusal lists."""
    key = await api.key(Scope.ADMIN, Scope.OPERATOR)
    schemas = document["components"]["schemas"]
    asked: list[str] = []
    for (method, path), operation in operations(document).items():
        body = operation.get("requestBody", {}).get("content", {}).get(JSON, {}).get("schema", {})
        shape = schemas.get(body.get("$ref", "").rpartition("/")[2], {})
        for name, member in shape.get("properties", {}).items():
            allowed = _allowed(member, document)
            if allowed and member.get("type") != "boolean":
                place = re.sub(r"\{[^}]+\}", NOBODY, path)
                is_list = not any("enum" in each for each in (member, *member.get("anyOf", ())))
                answer = await api.call(
                    method.upper(), place, key, json={name: ["nonsense"] if is_list else "nonsense"}
                )
                assert answer.status_code == 422, (path, name, answer.text)
                if answer.json()["path"] == f"$.{name}{'[0]' if is_list else ''}":
                    assert [each for each in allowed if each not in answer.json()["detail"]] == [], (path, name)
                    asked.append(name)
    assert {"if_exists", "status", "select", "sort_by", "stream_mode", "multitask_strategy"} <= set(asked)


def _allowed(schema: dict[str, Any], document: dict[str, Any]) -> list[str]:
    """The words that a schema allows, at its top or as items."""
    name = schema.get("$ref", "").rpartition("/")[2]
    own = document["components"]["schemas"].get(name, schema)
    if "enum" in own:
        return [str(each) for each in own["enum"]]
    inside = [own["items"]] if "items" in own else own.get("anyOf", [])
    return [each for inner in inside for each in _allowed(inner, document)]


async def test_the_document_needs_a_key_and_brings_no_page(api: Api, admin: str) -> None:
    """No page loads scripts from elsewhere, and no stranger reads the API's inventory."""
    assert (await api.call("GET", "/openapi.json")).status_code == 401
    for path in ("/schema", "/schema/openapi.json", "/docs", "/openapi.yaml", "/schema/swagger", "/"):
        assert (await api.call("GET", path, admin)).status_code == 404
