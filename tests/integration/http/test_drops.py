"""Drops over HTTP: filtered, paged, found again word for word, and shown where they were said."""

from typing import Any

import pytest

from tests.support.api import Api
from tests.support.compacting import FACTS, compacted, long_thread, receipt


@pytest.fixture
async def made(api: Api, admin: str) -> dict[str, Any]:
    """A compaction that took something away."""
    return await compacted(api, admin, await long_thread(api, admin))


async def pages(api: Api, key: str, path: str, **query: Any) -> list[dict[str, Any]]:
    """All items, page by page."""
    items: list[dict[str, Any]] = []
    cursor: dict[str, Any] = {}
    while True:
        page = await receipt(api, key, path, **query, **cursor)
        items += page["items"]
        if page["next"] is None:
            return items
        cursor = {"cursor": page["next"]}


async def test_drops_are_paged_and_filtered(api: Api, admin: str, made: dict[str, Any]) -> None:
    """Pages put together are the whole; each filter leaves what it says."""
    path = f"/compactions/{made['compaction_id']}/drops"
    whole = await pages(api, admin, path, limit=200, status="any")

    assert await pages(api, admin, path, limit=7, status="any") == whole
    gone = {"dropped", "altered", "promoted", "paraphrased"}
    assert await pages(api, admin, path) == [each for each in whole if each["status"] in gone]
    for query, passes in (
        ({"status": ["dropped", "merged"]}, lambda row: row["status"] in ("dropped", "merged")),
        ({"status": "any", "unit": "clause"}, lambda row: row["unit"] == "clause"),
        ({"status": "any", "class": "money"}, lambda row: row["class"] == "money"),
        ({"status": "any", "critical": True}, lambda row: row["critical"]),
        ({"status": "any", "role": "human"}, lambda row: row["role"] == "human"),
        ({"status": "any", "reason": "summariser_omitted"}, lambda row: row["reason"] == "summariser_omitted"),
        ({"status": "any", "q": "OPS-1"}, lambda row: "ops-1" in row["text"].lower()),
    ):
        found = await pages(api, admin, path, **query)
        assert found == [each for each in whole if passes(each)], query
        assert found, query


async def test_a_cursor_is_for_its_filter(api: Api, admin: str, made: dict[str, Any]) -> None:
    """Another filter's rows would be skipped unseen."""
    path = f"/compactions/{made['compaction_id']}/drops"
    cursor = (await receipt(api, admin, path, status="any", limit=1))["next"]

    refused = await api.call("GET", path, admin, params={"cursor": cursor, "unit": "atom"})

    assert (refused.status_code, refused.json()["code"]) == (400, "bad_cursor")


async def test_every_source_is_an_exact_span(api: Api, admin: str, made: dict[str, Any]) -> None:
    """The words of the thread, cut at start and end, are the drop's words."""
    view = await receipt(api, admin, f"/threads/{made['thread_id']}/view", view_id="whole")
    said = {part["seq"]: part["content"] for part in view["parts"]}
    drops = await pages(api, admin, f"/compactions/{made['compaction_id']}/drops", status="any", unit="atom")

    assert drops
    for drop in drops:
        for span in drop["sources"][:1]:
            assert said[span["seq"]][span["start"] : span["end"]] == drop["text"]


async def test_what_is_gone_is_found_again(api: Api, admin: str, made: dict[str, Any]) -> None:
    """By its exact value or by words, in the thread and over all threads of the tenant."""
    for path in (f"/threads/{made['thread_id']}/drops", "/drops"):
        (best, *_) = (await receipt(api, admin, path, q="db-3.example.com", limit=3))["items"]
        assert "db-3.example.com" in best["before"] + best["text"] + best["after"]
        assert (best["thread_id"], best["compaction_id"]) == (made["thread_id"], made["compaction_id"])
        assert best["role"] == "ai"
    nothing = await receipt(api, admin, "/drops", q="xylophone")
    assert nothing == {"items": []}
    assert (await api.call("GET", "/drops", admin)).status_code == 422


async def test_a_drop_is_shown_in_its_place(api: Api, admin: str, made: dict[str, Any]) -> None:
    """With the messages around it; of a compaction that is restored too."""
    (drop, *_) = await pages(api, admin, f"/compactions/{made['compaction_id']}/drops", status="any", q="INV-000412")

    origin = await receipt(api, admin, f"/drops/{drop['drop_id']}/source", context=1)

    assert origin["drop"] == drop
    assert origin["thread_id"] == made["thread_id"]
    says_it = [each for each in origin["messages"] if each["says_it"]]
    assert all(FACTS[3] in each["text"] or "INV-000412" in each["text"] for each in says_it)
    assert len(origin["messages"]) > len(says_it)


@pytest.mark.parametrize(
    ("query", "path", "allowed"),
    [
        ({"class": "moeny"}, "class", "money"),
        ({"class": ["money", "nothing"]}, "class", "constraint"),
        ({"status": "gone"}, "status", "dropped"),
    ],
)
async def test_what_no_drop_can_be_is_refused_with_what_it_can_be(
    api: Api, admin: str, made: dict[str, Any], query: dict[str, Any], path: str, allowed: str
) -> None:
    """An unknown class or status would otherwise look like a thread that lost nothing."""
    for where in (f"/threads/{made['thread_id']}/drops", f"/compactions/{made['compaction_id']}/drops", "/drops"):
        asked = query | ({"q": "x"} if where == "/drops" else {})
        refused = await api.call("GET", where, admin, params=asked)

        assert refused.status_code == 422
        assert refused.json()["path"] == path
        assert allowed in refused.json()["detail"]
