"""Tenants: memories of one do not exist for another, on every route of memory and of the store."""

from typing import Any

import pytest

from tests.support.api import Api
from threadmark.app.access import Scope

NOWHERE = "00000000-0000-4000-8000-000000000000"
#: Every route with an id of memory's in it, and a body that it takes.
ROUTES: list[tuple[str, str, Any]] = [
    ("GET", "/memories/{memory_id}", None),
    ("GET", "/memories/{memory_id}/history", None),
    ("GET", "/memories/{memory_id}/provenance", None),
    ("POST", "/memories/{memory_id}/retract", {"reason": "mine"}),
    ("POST", "/memories/{memory_id}/undo", None),
    ("POST", "/memories/{memory_id}/approve", None),
    ("GET", "/memories/erasures/{erasure_id}", None),
]
SECRET = "the vault opens with 4711"


@pytest.fixture
async def owned(api: Api) -> dict[str, str]:
    """A memory, an erasure, a quarantine and a document of the tenant `owner`, and its key."""
    key = await api.key(Scope.ADMIN, tenant_id="owner")
    fact = {"namespace": ["users", "7"], "text": SECRET, "subject": "vault", "attribute": "code", "value": 4711}
    made = await api.call("POST", "/memories", key, json={"items": [fact]})
    erased = await api.call("POST", "/memories/erase", key, json={"subject": "nobody"})
    apart = await api.call("POST", "/memories/quarantine", key, json={"source": {"actor": "Bob"}, "reason": "odd"})
    await api.call("PUT", "/store/items", key, json={"namespace": ["users"], "key": "k", "value": {"secret": SECRET}})
    return {
        "key": key,
        "memory_id": made.json()["items"][0]["memory_id"],
        "erasure_id": erased.json()["erasure_id"],
        "quarantine_id": apart.json()["quarantine_id"],
    }


@pytest.mark.parametrize(("method", "path", "body"), ROUTES, ids=[f"{method} {path}" for method, path, _ in ROUTES])
async def test_a_foreign_memory_looks_like_one_that_never_was(
    api: Api, owned: dict[str, str], method: str, path: str, body: Any
) -> None:
    """404 with the same sentence; afterwards the owner's memory is what it was."""
    stranger = await api.key(Scope.ADMIN, tenant_id="stranger")
    memory = f"/memories/{owned['memory_id']}"
    before = (await api.call("GET", memory, owned["key"])).content

    foreign = await api.call(method, path.format(**owned), stranger, json=body)
    missing = await api.call(method, path.format(**dict.fromkeys(owned, NOWHERE)), stranger, json=body)

    assert (foreign.status_code, missing.status_code) == (404, 404)
    ids = [owned["memory_id"], owned["erasure_id"], NOWHERE]
    texts = [each.json()["detail"] for each in (foreign, missing)]
    for each in ids:
        texts = [text.replace(each, "…") for text in texts]
    assert texts[0] == texts[1]
    assert (await api.call("GET", memory, owned["key"])).content == before


async def test_a_foreign_quarantine_is_not_released(api: Api, owned: dict[str, str]) -> None:
    """It looks like one that never was, and its owner's is in force still."""
    stranger = await api.key(Scope.ADMIN, tenant_id="stranger")
    path = f"/memories/quarantine/{owned['quarantine_id']}/release"
    fact = {"namespace": ["users"], "text": "said by Bob", "source": {"actor": "Bob"}}

    foreign = await api.call("POST", path, stranger)
    unknown = await api.call("POST", f"/memories/quarantine/{NOWHERE}/release", owned["key"])
    (verdict,) = (await api.call("POST", "/memories", owned["key"], json={"items": [fact]})).json()["items"]

    assert (foreign.status_code, unknown.status_code, verdict["status"]) == (404, 404, "quarantined")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/memories?namespace=[]&include=all", None),
        ("GET", "/memories?namespace=users", None),
        ("POST", "/memories/recall", {"query": SECRET, "namespace": []}),
        ("POST", "/memories/recall", {"query": SECRET, "namespace": ["users", "7"], "include": "all"}),
        ("GET", "/memories/timeline?namespace=[]&subject=vault&attribute=code", None),
        ("GET", "/memories/diff?namespace=[]&known_from=2000-01-01T00:00:00Z&known_to=2100-01-01T00:00:00Z", None),
        ("GET", "/memories/export?namespace=[]", None),
        ("GET", "/store/items?namespace=users&key=k", None),
        ("POST", "/store/items/search", {"namespace_prefix": []}),
        ("POST", "/store/items/search", {"namespace_prefix": [], "query": SECRET}),
        ("POST", "/store/namespaces", {}),
    ],
    ids=str,
)
async def test_nothing_of_another_tenant_is_found(
    api: Api, owned: dict[str, str], method: str, path: str, body: Any
) -> None:
    """The owner finds it by the same request."""
    stranger = await api.key(Scope.ADMIN, tenant_id="stranger")

    theirs = await api.call(method, path, stranger, json=body)
    own = await api.call(method, path, owned["key"], json=body)

    assert (theirs.status_code, own.status_code) == (200, 200)
    assert "4711" not in theirs.text
    assert "users" not in theirs.text
    assert "users" in own.text


async def test_an_erasure_of_one_tenant_leaves_the_other_whole(api: Api, owned: dict[str, str]) -> None:
    """Also the one of everything."""
    stranger = await api.key(Scope.ADMIN, tenant_id="stranger")

    erased = await api.call("POST", "/memories/erase", stranger, json={"tenant": True})
    await api.call("DELETE", "/store/items", stranger, json={"namespace": ["users"], "key": "k"})

    assert erased.json()["counts"]["assertions"] == 0
    assert (await api.call("GET", f"/memories/{owned['memory_id']}", owned["key"])).json()["text"] == SECRET
    assert (await api.call("GET", "/store/items?namespace=users&key=k", owned["key"])).json() is not None


async def test_an_export_does_not_carry_ids_into_another_tenant(api: Api, owned: dict[str, str]) -> None:
    """An id that is taken by another tenant is refused, and nothing is kept."""
    stranger = await api.key(Scope.ADMIN, tenant_id="stranger")
    exported = (await api.call("GET", "/memories/export?namespace=[]", owned["key"])).content

    imported = await api.call("POST", "/memories/import?namespace=[]", stranger, content=exported)

    assert (imported.status_code, "has an id that is taken" in imported.json()["detail"]) == (422, True)
    assert (await api.call("GET", "/memories?namespace=[]", stranger)).json()["items"] == []
