"""The check that every answer in the HTTP tests passes notices each way in which a document can lie."""

from typing import Any

import httpx
import pytest

from tests.support.described import Document

PAGE = {"$ref": "#/components/schemas/Page"}
PLAIN: dict[str, Any] = {
    "paths": {
        "/pages/{page_id}": {
            "get": {
                "responses": {
                    "200": {"content": {"application/json": {"schema": PAGE}}},
                    "204": {},
                    "503": {
                        "content": {"application/json": {"schema": {}}},
                        "headers": {"Retry-After": {"schema": {"type": "integer", "minimum": 1}, "required": True}},
                    },
                }
            }
        },
        "/pages/count": {"get": {"responses": {"200": {"content": {"application/json": {"schema": {}}}}}}},
    },
    "components": {
        "schemas": {
            "Page": {
                "type": "object",
                "required": ["id"],
                "properties": {
                    "id": {"type": "string", "format": "uuid"},
                    "at": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
                    "rows": {"type": "array", "items": {"type": "integer", "minimum": 0}, "maxItems": 2},
                    "kind": {"enum": ["a", "b"], "type": "string"},
                },
            }
        }
    },
}
ID = "01a2272d-2600-7b48-b705-b1363eb3ca8c"


def answer(status: int = 200, path: str = f"/pages/{ID}", method: str = "GET", **content: Any) -> httpx.Response:
    """An answer to a request of the path."""
    return httpx.Response(status, request=httpx.Request(method, f"http://threadmark.local{path}"), **content)


@pytest.mark.parametrize(
    "response",
    [
        answer(json={"id": ID}),
        answer(json={"id": ID, "at": "2026-12-01T08:00:00Z", "rows": [0, 1], "kind": "b"}),
        answer(json={"id": ID, "at": None}),
        answer(204),
        answer(503, json={}, headers={"retry-after": "2"}),
        answer(path="/pages/count", json=3),
        answer(404, path="/elsewhere", json={}),
        answer(405, method="PUT", headers={"allow": "GET, OPTIONS"}),
        answer(400, method="PUT"),
    ],
)
def test_what_is_described_passes(response: httpx.Response) -> None:
    """And what the document does not speak of."""
    Document(PLAIN).check(response)


@pytest.mark.parametrize(
    ("response", "why"),
    [
        (answer(409, json={}), "the status is none of 200, 204, 503"),
        (answer(200, text="{}"), "the media type 'text/plain' is none of application/json"),
        (answer(204, json={}), "there is a body"),
        (answer(503, json={}), "the header Retry-After is missing"),
        (answer(503, json={}, headers={"retry-after": "0"}), "Retry-After: '0' is not of minimum 1"),
        (answer(405, method="PUT", headers={"allow": "GET, PUT"}), "is not refused with the methods that there are"),
        (answer(200, method="PUT", json={}), "is not refused with the methods that there are"),
        (answer(json={}), "$.id: is missing"),
        (answer(json={"id": "7"}), "$.id: '7' is not of format uuid"),
        (answer(json={"id": ID, "more": 1}), "$.more: is not described"),
        (answer(json={"id": ID, "at": "2026-12-01T08:00:00"}), "$.at: fits none of"),
        (answer(json={"id": ID, "rows": [1, -1]}), "$.rows[1]: '-1' is not of minimum 0"),
        (answer(json={"id": ID, "rows": [1, 2, 3]}), "is not of maxItems 2"),
        (answer(json={"id": ID, "rows": [True]}), "$.rows[0]: 'True' is not of type integer"),
        (answer(json={"id": ID, "kind": "c"}), "$.kind: 'c' is not of enum"),
    ],
)
def test_what_is_described_otherwise_is_noticed(response: httpx.Response, why: str) -> None:
    """Whatever part of an answer it is."""
    with pytest.raises(AssertionError) as refused:
        Document(PLAIN).check(response)

    assert why in str(refused.value)
