"""The store as the unmodified SDK sees it: five calls over the rows of memory."""

from typing import Any

import pytest
from langgraph_sdk.errors import UnprocessableEntityError

from tests.support.agent_server import Running
from tests.support.waiting import wait_until

ADA, BOB = ["users", "ada"], ["users", "bob"]


async def test_a_document_is_put_read_replaced_and_deleted(running: Running) -> None:
    """Putting it again keeps the instant of the first version; what is not there is null."""
    store = running.sdk.store
    await store.put_item(ADA, "prefs", {"theme": "dark", "size": 11})
    first: Any = await store.get_item(ADA, "prefs")
    await store.put_item(ADA, "prefs", {"theme": "light"})
    second: Any = await store.get_item(ADA, "prefs")

    assert (first["namespace"], first["key"], first["value"]) == (ADA, "prefs", {"theme": "dark", "size": 11})
    assert second["value"] == {"theme": "light"}
    assert second["created_at"] == first["created_at"]
    assert second["updated_at"] > first["updated_at"]
    await store.delete_item(ADA, "prefs")
    await store.delete_item(ADA, "prefs")
    assert await store.get_item(ADA, "prefs") is None


async def test_documents_are_found_by_prefix_filter_and_words(running: Running) -> None:
    """The newest first, or the best first with a score; a prefix ends at a label's end."""
    store = running.sdk.store
    await store.put_item(ADA, "a", {"kind": "pet", "name": "Rex the dog", "age": 3})
    await store.put_item(ADA, "b", {"kind": "car", "name": "a red bicycle", "age": 7})
    await store.put_item(BOB, "c", {"kind": "pet", "name": "Tom the cat", "age": 9})
    await store.put_item(["users-of-old"], "d", {"kind": "pet"})

    def keys(found: Any) -> list[str]:
        return [each["key"] for each in found["items"]]

    assert keys(await store.search_items(["users"])) == ["c", "b", "a"]
    assert keys(await store.search_items(["users"], limit=1, offset=1)) == ["b"]
    assert keys(await store.search_items(["users"], filter={"kind": "pet", "age": {"$gt": 3}})) == ["c"]
    assert keys(await store.search_items(["user"])) == []
    best: Any = await store.search_items(["users"], query="bicycle")
    assert best["items"][0]["key"] == "b"
    assert best["items"][0]["score"] > 0


async def test_namespaces_are_listed_by_prefix_suffix_and_depth(running: Running) -> None:
    """In order, each once."""
    store = running.sdk.store
    for namespace in (ADA, BOB, ["teams", "ada"], ["teams", "ada", "docs"]):
        await store.put_item(namespace, "k", {"v": 1})

    async def listed(**spec: Any) -> list[list[str]]:
        found: Any = await store.list_namespaces(**spec)
        return list(found["namespaces"])

    assert await listed() == [["teams", "ada"], ["teams", "ada", "docs"], ADA, BOB]
    assert await listed(prefix=["users"]) == [ADA, BOB]
    assert await listed(suffix=["ada"]) == [["teams", "ada"], ADA]
    assert await listed(max_depth=1) == [["teams"], ["users"]]
    assert await listed(limit=1, offset=2) == [ADA]


async def test_a_document_ends_when_its_time_is_over(running: Running) -> None:
    """A time to live is honoured by every reading, before any sweep."""
    store = running.sdk.store
    await store.put_item(ADA, "code", {"pin": 1}, ttl=0.001)  # type: ignore[arg-type]

    async def is_gone() -> bool:
        return await store.get_item(ADA, "code") is None

    await wait_until(is_gone, description="the document ends")
    found: Any = await store.search_items(ADA)
    assert found["items"] == []


async def test_what_is_not_honoured_is_refused(running: Running) -> None:
    """An index over some fields alone, and a reading that would prolong a document."""
    store = running.sdk.store
    with pytest.raises(UnprocessableEntityError):
        await store.put_item(ADA, "k", {"v": 1}, index=["v"])
    with pytest.raises(UnprocessableEntityError):
        await store.get_item(ADA, "k", refresh_ttl=True)
