"""Pages: every row once, in both directions, whatever happens between two of them."""

from typing import Any

import pytest

from tests.support.api import Api
from threadmark.app.access import Scope
from threadmark.app.listing.pages import PAGE_SIZE_MAX

KEYS = "/admin/keys"


async def page(api: Api, key: str, **query: Any) -> dict[str, Any]:
    """One page of keys."""
    response = await api.call("GET", KEYS, key, params={name: each for name, each in query.items() if each is not None})
    assert response.status_code == 200, response.text
    return dict(response.json())


def labels(of: dict[str, Any]) -> list[str]:
    """What a page shows."""
    return [each["label"] for each in of["items"]]


async def test_rows_of_one_instant_are_walked_once_each_in_both_directions(api: Api) -> None:
    """Fifteen rows with equal timestamps, four to a page, while rows come between the pages."""
    admin = await api.key(Scope.ADMIN, label="k0")
    for number in range(1, 15):
        await api.key(Scope.READ, label=f"k{number}")
    expected = [f"k{number}" for number in reversed(range(15))]

    pages = [await page(api, admin, limit=4)]
    while (following := pages[-1]["next"]) is not None:
        await api.key(Scope.READ, label="came later")
        pages.append(await page(api, admin, limit=4, cursor=following))
    forward = [label for each in pages for label in labels(each)]

    back = [pages[-1]]
    while (preceding := back[-1]["previous"]) is not None:
        back.append(await page(api, admin, limit=4, cursor=preceding))
    backward = [label for each in reversed(back) for label in labels(each)]

    assert expected == forward
    assert expected == [label for label in backward if label != "came later"]
    assert backward.count("came later") == 3


async def test_one_page_has_no_page_beside_it(api: Api, admin: str) -> None:
    """When all is shown, neither cursor is there."""
    shown = await page(api, admin)

    assert (len(shown["items"]), shown["next"], shown["previous"]) == (1, None, None)


async def test_a_page_that_is_just_full_is_the_last(api: Api, admin: str) -> None:
    """No cursor leads to an empty page."""
    await api.key(Scope.READ)

    assert (await page(api, admin, limit=2))["next"] is None
    assert (await page(api, admin, limit=1))["next"] is not None


@pytest.mark.parametrize("limit", ["0", "-1", str(PAGE_SIZE_MAX + 1), "many", "1.5", "", "9" * 40])
async def test_the_size_of_a_page_is_bounded(api: Api, admin: str, limit: str) -> None:
    """1 to 200 rows; anything else is refused with the parameter's name."""
    response = await api.call("GET", f"{KEYS}?limit={limit}", admin)

    assert (response.status_code, response.json()["path"]) == (422, "limit")
    assert (await api.call("GET", f"{KEYS}?limit={PAGE_SIZE_MAX}", admin)).status_code == 200


@pytest.mark.parametrize("cursor", ["x", "A" * 5_000, "null", "", "e30", "\x00"])
async def test_a_bad_cursor_is_refused(api: Api, admin: str, cursor: str) -> None:
    """400, and nothing is listed."""
    response = await api.call("GET", KEYS, admin, params={"cursor": cursor})

    assert (response.status_code, response.json()["code"]) == (400, "bad_cursor")


async def test_a_cursor_is_good_for_its_tenant_and_its_filter(api: Api, admin: str, operator: str) -> None:
    """Another tenant's cursor, or one of another filter, is a bad cursor and shows nothing."""
    other = await api.key(Scope.ADMIN, tenant_id="other")
    await api.key(Scope.READ, tenant_id="other")
    cursor = (await page(api, admin, limit=1))["next"]

    foreign = await api.call("GET", KEYS, other, params={"limit": 1, "cursor": cursor})
    refiltered = await api.call("GET", KEYS, operator, params={"tenant_id": "other", "cursor": cursor})

    assert {(400, "bad_cursor")} == {(each.status_code, each.json()["code"]) for each in (foreign, refiltered)}
