"""Tenants: a compaction, its ledger and its views do not exist for another tenant, on every route around them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.api import Api
from tests.support.compacting import FACTS, compacted, long_thread, receipt
from threadmark.app.access import Scope

NOWHERE = "00000000-0000-4000-8000-000000000000"
DIFF = {"before": "whole", "after": "whole"}
#: Every route with an id of a compaction's world, and a query or body that it takes.
ROUTES: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/threads/{thread_id}/compactions", {"json": {"wait": True}}),
    ("GET", "/threads/{thread_id}/compactions", {}),
    ("GET", "/threads/{thread_id}/compactions/verify", {}),
    ("GET", "/compactions/{compaction_id}", {}),
    ("GET", "/compactions/{compaction_id}/ledger", {}),
    ("GET", "/compactions/{compaction_id}/verify", {}),
    ("GET", "/compactions/{compaction_id}/drops", {}),
    ("POST", "/compactions/{compaction_id}/restore", {"json": {"scope": "all"}}),
    ("GET", "/threads/{thread_id}/view", {}),
    ("GET", "/threads/{thread_id}/views", {}),
    ("POST", "/threads/{thread_id}/segments/{compaction_id}/expand", {}),
    ("GET", "/threads/{thread_id}/views/diff", {"params": DIFF}),
    ("POST", "/threads/{thread_id}/views/{view_id}/undo", {}),
    ("POST", "/threads/{thread_id}/views/{view_id}/activate", {}),
    ("GET", "/threads/{thread_id}/drops", {"params": {"q": "budget"}}),
    ("POST", "/threads/{thread_id}/pins", {"json": {"spans": [{"seq": 3, "start": 0, "end": 1}]}}),
    ("GET", "/drops/{drop_id}/source", {}),
    ("GET", "/threads/{thread_id}/drops/recalls", {}),
    ("GET", "/threads/{thread_id}/pins/suggestions", {}),
]


@pytest.fixture
async def owned(api: Api) -> AsyncIterator[dict[str, str]]:
    """Ids of a compaction of the tenant `owner`, and its key; afterwards its view is what it was."""
    key = await api.key(Scope.ADMIN, tenant_id="owner")
    made = await compacted(api, key, await long_thread(api, key))
    page = await receipt(api, key, f"/compactions/{made['compaction_id']}/drops", limit=1)
    before = await receipt(api, key, f"/threads/{made['thread_id']}/view")
    yield {
        "key": key,
        "thread_id": made["thread_id"],
        "compaction_id": made["compaction_id"],
        "view_id": made["view_id"],
        "drop_id": page["items"][0]["drop_id"],
    }
    assert await receipt(api, key, f"/threads/{made['thread_id']}/view") == before


def neutral(response: Any, ids: dict[str, str]) -> str:
    """A body without what has to differ: the ids that were asked for, and that of the request."""
    text = str(response.text)
    for each in sorted((response.headers["x-request-id"], *ids.values()), key=len, reverse=True):
        text = text.replace(each, "…")
    return text


async def test_a_foreign_compaction_looks_like_one_that_never_was(api: Api, owned: dict[str, str]) -> None:
    """404 with the same body, on every route; the owner's view stays."""
    stranger = await api.key(Scope.ADMIN, tenant_id="stranger")
    nobodys = {**dict.fromkeys(owned, NOWHERE), "drop_id": f"{NOWHERE}.{'0' * 24}"}
    for method, path, request in ROUTES:
        foreign = await api.call(method, path.format(**owned), stranger, **request)
        missing = await api.call(method, path.format(**nobodys), stranger, **request)

        assert (path, foreign.status_code, missing.status_code) == (path, 404, 404)
        assert neutral(foreign, owned) == neutral(missing, nobodys), path


async def test_a_search_over_a_tenant_is_of_that_tenant_alone(api: Api, owned: dict[str, str]) -> None:
    """The owner finds what a stranger does not, by the same words."""
    stranger = await api.key(Scope.READ, tenant_id="stranger")
    words = f"{FACTS[2]} db-2.example.com"

    assert (await receipt(api, owned["key"], "/drops", q=words, status="any"))["items"]
    assert (await receipt(api, stranger, "/drops", q=words, status="any"))["items"] == []
