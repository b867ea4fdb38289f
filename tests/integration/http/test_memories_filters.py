"""C70 over HTTP: hostile keys of a filter are refused or find nothing, and are never an error of the server."""

import json
from typing import Any

import pytest

from tests.support.api import Api
from threadmark.app.access import Scope

KEYS = ("a') OR 1=1 --", "a.b", "$.x", "", "a\0", '"', "%", "tenant_id", "namespace")


@pytest.fixture
async def key(api: Api) -> str:
    """The key of a tenant beside whom another has memories and documents."""
    for tenant_id in ("mine", "other"):
        owner = await api.key(Scope.ADMIN, tenant_id=tenant_id)
        fact = {"namespace": ["users"], "text": f"kayak of {tenant_id}"}
        document = {"namespace": ["users"], "key": "k", "value": {"of": tenant_id}}
        assert (await api.call("POST", "/memories", owner, json={"items": [fact]})).status_code == 200
        assert (await api.call("PUT", "/store/items", owner, json=document)).status_code in {200, 204}
    return await api.key(Scope.ADMIN, tenant_id="mine")


@pytest.mark.parametrize("name", KEYS, ids=repr)
async def test_a_hostile_key_finds_nothing(api: Api, key: str, name: str) -> None:
    """Memories refuse it; no document has such a field."""
    asked = {"query": "kayak", "namespace": [], "filter": {name: "x"}}
    recalled = await api.call("POST", "/memories/recall", key, json=asked)
    searched = await api.call("POST", "/store/items/search", key, json={"namespace_prefix": [], "filter": {name: "x"}})

    assert (recalled.status_code, recalled.json()["path"]) == (422, "$.filter")
    assert searched.status_code == 200, searched.text
    assert searched.json() == {"items": []}


@pytest.mark.parametrize("name", ["sort_by", "order_by", "sort", "tenant_id"])
async def test_an_order_that_nobody_offers_is_refused(api: Api, key: str, name: str) -> None:
    """Listings have one order."""
    for path, body in (
        ("/memories/recall", {"query": "kayak", "namespace": []}),
        ("/store/items/search", {"namespace_prefix": []}),
    ):
        answer = await api.call("POST", path, key, json=body | {name: "text; DROP TABLE memory_assertion"})
        assert answer.status_code == 422, answer.text


async def test_too_much_is_refused(api: Api, key: str) -> None:
    """A thousand keys, and a nesting of two hundred."""
    deep: Any = 1
    for _ in range(200):
        deep = {"deeper": deep}
    for given in ({f"key {number}": 1 for number in range(1_000)}, {"kind": deep}):
        for path, body in (
            ("/memories/recall", {"query": "kayak", "namespace": []}),
            ("/store/items/search", {"namespace_prefix": []}),
        ):
            answer = await api.call(
                "POST",
                path,
                key,
                content=json.dumps(body | {"filter": given}),
                headers={"content-type": "application/json"},
            )
            assert answer.status_code in {400, 413, 422}, answer.text
