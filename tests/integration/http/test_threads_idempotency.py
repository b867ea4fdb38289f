"""Idempotency keys on what makes threads, copies and checkpoints: the second request gets the first one's answer."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.api import Api
from threadmark.app.access import Scope

Call = Callable[..., Awaitable[Any]]


@pytest.fixture
async def key(api: Api) -> str:
    """A key that reads and runs."""
    return await api.key(Scope.READ, Scope.RUN)


@pytest.fixture
async def thread(api: Api, key: str) -> str:
    """The path of a new thread."""
    return f"/threads/{(await api.call('POST', '/threads', key)).json()['thread_id']}"


def posting(api: Api, path: str, key: str) -> Call:
    """Post to a path with an idempotency key."""

    async def post(body: Any, name: str = "k1", **request: Any) -> Any:
        return await api.call("POST", path, key, json=body, headers={"idempotency-key": name}, **request)

    return post


@pytest.mark.parametrize(
    ("route", "first", "reordered", "other"),
    [
        ("/threads", {"metadata": {"a": 1, "b": 2}}, {"metadata": {"b": 2, "a": 1}}, {"metadata": {"a": 1, "b": 3}}),
        (
            "{thread}/state",
            {"values": {"messages": ["hi"]}, "as_node": "model"},
            {"as_node": "model", "values": {"messages": ["hi"]}},
            {"values": {"messages": ["ho"]}, "as_node": "model"},
        ),
        ("{thread}/copy", None, None, {}),
    ],
)
async def test_one_key_stands_for_one_request(
    api: Api, key: str, thread: str, route: str, first: Any, reordered: Any, other: Any
) -> None:
    """The same request is answered with the stored answer, marked; another body or another path is refused."""
    post = posting(api, route.format(thread=thread), key)

    made = await post(first)
    again = await post(reordered)
    refused = await post(other)
    elsewhere = await posting(api, f"{thread}/state", key)({"values": {"messages": ["elsewhere"]}})

    assert made.status_code == 200
    assert (again.status_code, again.content) == (made.status_code, made.content)
    assert "idempotent-replayed" not in made.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_key_reused")
    assert (elsewhere.status_code, elsewhere.json()["code"]) == (422, "idempotency_key_reused")


async def test_twenty_at_once_make_one(api: Api, key: str) -> None:
    """The first request makes it; the others get the same response."""
    post = posting(api, "/threads", key)

    answers = await asyncio.gather(*(post({"metadata": {"a": 1}}) for _ in range(20)))

    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert (await api.call("POST", "/threads/count", key)).json() == 1


async def test_a_key_of_another_tenant_is_another_key(api: Api, key: str) -> None:
    """Both make a thread of their own."""
    stranger = await api.key(Scope.RUN, tenant_id="other")

    mine, theirs = await posting(api, "/threads", key)({}), await posting(api, "/threads", stranger)({})

    assert (mine.status_code, theirs.status_code) == (200, 200)
    assert mine.json()["thread_id"] != theirs.json()["thread_id"]


@pytest.mark.parametrize("name", ["", "x" * 256, "a b", "a\tb"])
async def test_a_key_that_is_none_is_refused(api: Api, key: str, name: str) -> None:
    """400, and nothing is made."""
    response = await posting(api, "/threads", key)({}, name)

    assert (response.status_code, response.json()["code"]) == (400, "bad_idempotency_key")
    assert (await api.call("POST", "/threads/count", key)).json() == 0


async def test_a_refused_request_leaves_its_key_free(api: Api, key: str) -> None:
    """Nothing was done, so nothing is remembered."""
    post = posting(api, "/threads", key)
    taken = (await api.call("POST", "/threads", key)).json()["thread_id"]

    assert (await post({"thread_id": taken})).status_code == 409
    assert (await post({"metadata": {"a": 1}})).status_code == 200
