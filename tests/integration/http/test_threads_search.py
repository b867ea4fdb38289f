"""Searching threads: filters, order, fields, and pages that skip nothing."""

from typing import Any

import pytest

from tests.support.api import Api
from threadmark.app.access import Scope
from threadmark.app.listing.pages import PAGE_SIZE_MAX

SEARCH = "/threads/search"


@pytest.fixture
async def key(api: Api) -> str:
    """A key that reads and runs."""
    return await api.key(Scope.READ, Scope.RUN)


async def made(api: Api, key: str, **metadata: Any) -> str:
    """A new thread with this metadata; its id."""
    response = await api.call("POST", "/threads", key, json={"metadata": metadata})
    return str(response.json()["thread_id"])


async def found(api: Api, key: str, **search: Any) -> list[dict[str, Any]]:
    """The threads of one page."""
    response = await api.call("POST", SEARCH, key, json=search)
    assert response.status_code == 200, response.text
    return list(response.json())


async def numbers(api: Api, key: str, **search: Any) -> list[int]:
    """The `n` of the threads of one page."""
    return [each["metadata"]["n"] for each in await found(api, key, **search)]


async def test_every_condition_holds(api: Api, key: str) -> None:
    """Metadata by top-level keys and whole values, status, and ids."""
    first = await made(api, key, n=1, user="ada", tags=["x"])
    await made(api, key, n=2, user="ada", tags=["x", "y"])
    await made(api, key, n=3, user="bob", tags=["x"])

    assert sorted(await numbers(api, key, metadata={"user": "ada"})) == [1, 2]
    assert await numbers(api, key, metadata={"user": "ada", "tags": ["x"]}) == [1]
    assert await numbers(api, key, metadata={"user": "ada"}, ids=[first.upper()]) == [1]
    assert await numbers(api, key, status="busy") == []
    assert len(await numbers(api, key, status="idle")) == 3
    counted = await api.call("POST", "/threads/count", key, json={"metadata": {"user": "ada"}})
    assert counted.json() == 2


async def test_a_value_is_itself_and_not_something_like_it(api: Api, key: str) -> None:
    """1, true, "1" and null are four values."""
    for number, value in enumerate([1, True, "1", None, 1.0]):
        await made(api, key, n=number, v=value)

    assert await numbers(api, key, metadata={"v": True}) == [1]
    assert await numbers(api, key, metadata={"v": "1"}) == [2]
    assert await numbers(api, key, metadata={"v": None}) == [3]


@pytest.mark.parametrize("name", ["a') OR 1=1 --", "a.b", "$.x", "", "a\x00", "%", "_", "\\", '"', "user' --", "🦆"])
async def test_the_name_of_a_filter_is_only_a_name(api: Api, key: str, name: str) -> None:
    """It enters no SQL text and no JSON path: it finds exactly that key, and nothing of another tenant."""
    other = await api.key(Scope.RUN, tenant_id="other")
    await made(api, other, n=1, user="x")
    await made(api, key, n=2, user="x")

    assert await found(api, key, metadata={name: "x"}) == []
    await api.call("POST", "/threads", key, json={"metadata": {"n": 3, name: "x"}})
    assert await numbers(api, key, metadata={name: "x"}) == [3]


@pytest.mark.parametrize(
    "search",
    [
        {"values": {"messages": []}},
        {"extract": {"a": "values.messages[0]"}},
        {"metadata": {str(number): number for number in range(21)}},
        {"ids": ["x"]},
        {"ids": [1]},
        {"status": "asleep"},
        {"sort_by": "metadata"},
        {"sort_order": "up"},
        {"select": ["tenant_id"]},
        {"limit": 0},
        {"limit": PAGE_SIZE_MAX + 1},
        {"limit": "10"},
        {"offset": -1},
        {"offset": 10**12},
    ],
)
async def test_what_cannot_be_searched_for_is_refused(api: Api, key: str, search: dict[str, Any]) -> None:
    """A filter that is not supported would return too much."""
    assert (await api.call("POST", SEARCH, key, json=search)).status_code == 422


async def test_the_order_is_asked_for(api: Api, key: str) -> None:
    """Latest first by default; by any of the columns of the dialect."""
    ids = [await made(api, key, n=number) for number in range(3)]
    await api.call("PATCH", f"/threads/{ids[0]}", key, json={"metadata": {"touched": True}})

    assert await numbers(api, key) == [2, 1, 0]
    assert await numbers(api, key, sort_order="asc") == [0, 1, 2]
    for column in ("thread_id", "status", "created_at", "updated_at", "state_updated_at"):
        assert sorted(await numbers(api, key, sort_by=column, sort_order="asc")) == [0, 1, 2]
    by_id = [each["thread_id"] for each in await found(api, key, sort_by="thread_id", sort_order="asc")]
    assert by_id == sorted(ids)


async def test_only_the_selected_fields_are_shown(api: Api, key: str) -> None:
    """The rest is not even read."""
    await made(api, key, n=1)

    assert [sorted(each) for each in await found(api, key, select=["thread_id", "status"])] == [["status", "thread_id"]]


async def test_pages_by_offset_say_how_many_there_are_and_where_the_next_begins(api: Api, key: str) -> None:
    """The headers of the dialect; the last page has no next one."""
    for number in range(3):
        await made(api, key, n=number)

    first = await api.call("POST", SEARCH, key, json={"limit": 2})
    last = await api.call("POST", SEARCH, key, json={"limit": 2, "offset": 2})

    assert (first.headers["x-pagination-total"], first.headers["x-pagination-next"]) == ("3", "2")
    assert (len(last.json()), last.headers["x-pagination-total"]) == (1, "3")
    assert "x-pagination-next" not in last.headers


@pytest.mark.parametrize("descending", [True, False])
async def test_rows_of_one_instant_are_walked_once_each_in_both_directions(
    api: Api, key: str, descending: bool
) -> None:
    """Fifteen threads of one instant, four to a page; threads come and go between the pages."""
    ids = [await made(api, key, n=number) for number in range(15)]
    order = {"sort_order": "desc" if descending else "asc", "limit": 4, "select": ["metadata"]}
    expected = [14 - number if descending else number for number in range(15)]

    pages = [await api.call("POST", SEARCH, key, json=order)]
    while (following := pages[-1].headers.get("x-pagination-next-cursor")) is not None:
        await made(api, key, n=100)
        if len(pages) == 1:
            # One that was shown already, and one that is still to come.
            for number in (expected[1], expected[9]):
                await api.call("DELETE", f"/threads/{ids[number]}", key)
        pages.append(await api.call("POST", SEARCH, key, json={**order, "cursor": following}))
    back = [pages[-1]]
    while (preceding := back[-1].headers.get("x-pagination-previous-cursor")) is not None:
        back.append(await api.call("POST", SEARCH, key, json={**order, "cursor": preceding}))

    forward = [each["metadata"]["n"] for page in pages for each in page.json()]
    backward = [each["metadata"]["n"] for page in reversed(back) for each in page.json()]
    stayed = [number for number in expected if number not in (expected[1], expected[9])]
    assert [number for number in forward if number in stayed] == stayed
    assert [number for number in backward if number in stayed] == stayed


async def test_a_cursor_belongs_to_its_tenant_and_its_filter(api: Api, key: str) -> None:
    """Tampered with, of another tenant, or with another filter or order: 400, and nothing is shown."""
    for number in range(3):
        await made(api, key, n=number)
    first = await api.call("POST", SEARCH, key, json={"limit": 1})
    cursor = first.headers["x-pagination-next-cursor"]
    stranger = await api.key(Scope.READ, tenant_id="other")

    refused = [
        await api.call("POST", SEARCH, key, json={"cursor": ("A" if cursor[0] != "A" else "B") + cursor[1:]}),
        await api.call("POST", SEARCH, stranger, json={"cursor": cursor}),
        await api.call("POST", SEARCH, key, json={"cursor": cursor, "metadata": {"n": 1}}),
        await api.call("POST", SEARCH, key, json={"cursor": cursor, "sort_order": "asc"}),
        await api.call("POST", SEARCH, key, json={"cursor": cursor, "sort_by": "thread_id"}),
        await api.call("POST", SEARCH, key, json={"cursor": ""}),
    ]

    assert [(each.status_code, each.json()["code"]) for each in refused] == [(400, "bad_cursor")] * 6
    both = await api.call("POST", SEARCH, key, json={"cursor": cursor, "offset": 1})
    assert (both.status_code, both.json()["path"]) == (422, "$.offset")


async def test_a_page_that_is_just_full_is_the_last(api: Api, key: str) -> None:
    """No header leads to an empty page."""
    await made(api, key, n=1)

    headers = (await api.call("POST", SEARCH, key, json={"limit": 1})).headers

    assert not [name for name in headers if name.startswith("x-pagination-") and name != "x-pagination-total"]
