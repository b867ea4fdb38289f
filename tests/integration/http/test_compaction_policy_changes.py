"""Changes of a named policy that hold only of the version that was read, and the list of its versions."""

import asyncio
from typing import Any

import pytest

from tests.support.api import Api
from tests.support.compacting import POLICY, receipt
from threadmark.app.access import Scope

POLICIES = "/compaction-policies"


async def put(api: Api, key: str, tokens: int, **headers: str) -> Any:
    """What a PUT of `tight` is answered."""
    names = {"if_match": "if-match", "if_none_match": "if-none-match"}
    sent = {names[name]: value for name, value in headers.items()}
    return await api.call("PUT", f"{POLICIES}/tight", key, json={**POLICY, "summary_tokens": tokens}, headers=sent)


async def test_a_version_is_its_tag(api: Api, admin: str) -> None:
    """Of a PUT and of a GET, also of an earlier version."""
    first, second = await put(api, admin, 60), await put(api, admin, 70)
    read = await api.call("GET", f"{POLICIES}/tight", admin)
    earlier = await api.call("GET", f"{POLICIES}/tight", admin, params={"version": 1})

    assert [each.headers["etag"] for each in (first, second, read, earlier)] == ['"1"', '"2"', '"2"', '"1"']


async def test_a_change_of_what_was_read_before_is_refused(api: Api, admin: str) -> None:
    """412 with the version that is there, and nothing has changed; one of several tags is enough."""
    await put(api, admin, 60)
    changed = await put(api, admin, 70, if_match='"1"')
    late = await put(api, admin, 80, if_match='"1"')
    again = await put(api, admin, 80, if_match='"1", "2"')
    weak = await put(api, admin, 90, if_match='W/"3"')
    foreign = await put(api, admin, 90, if_match='"abc"')

    assert [each.status_code for each in (changed, late, again, weak, foreign)] == [201, 412, 201, 412, 412]
    assert (late.json()["code"], "version 2" in late.json()["detail"]) == ("precondition_failed", True)
    assert (await receipt(api, admin, f"{POLICIES}/tight"))["version"] == 3


async def test_a_name_is_taken_once(api: Api, admin: str) -> None:
    """Of two that want it new, one gets it; given up, it can be had again, and is not there to be changed."""
    made = await asyncio.gather(*(put(api, admin, 60 + number, if_none_match="*") for number in range(4)))
    assert sorted(each.status_code for each in made) == [201, 412, 412, 412]

    path = f"{POLICIES}/tight"
    late = await api.call("DELETE", path, admin, headers={"if-match": '"7"'})
    gone = await api.call("DELETE", path, admin, headers={"if-match": '"1"'})
    there = await put(api, admin, 60, if_match="*")
    new = await put(api, admin, 60, if_none_match="*")

    assert [each.status_code for each in (late, gone, there, new)] == [412, 204, 412, 201]
    assert new.json()["version"] == 3


@pytest.mark.parametrize(
    "headers", [{"if_match": "1"}, {"if_match": ""}, {"if_none_match": '"1"'}, {"if_match": "*", "if_none_match": "*"}]
)
async def test_a_condition_that_is_not_honoured_is_refused(api: Api, admin: str, headers: dict[str, str]) -> None:
    """422, never taken for none."""
    assert (await put(api, admin, 60, **headers)).status_code == 422
    assert (await receipt(api, admin, POLICIES))["items"] == []


async def test_versions_are_listed_newest_first(api: Api, admin: str) -> None:
    """Those in which the name was given up too; page by page; and not for a stranger."""
    for tokens in (60, 70):
        await put(api, admin, tokens)
    await api.call("DELETE", f"{POLICIES}/tight", admin)
    await put(api, admin, 80)
    path = f"{POLICIES}/tight/versions"
    first = await receipt(api, admin, path, limit=3)
    rest = await receipt(api, admin, path, limit=3, cursor=first["next"])
    stranger = await api.key(Scope.ADMIN, tenant_id="stranger")

    shown = [(each["version"], each["policy"] and each["policy"]["summary_tokens"]) for each in first["items"]]
    assert shown == [(4, 80), (3, None), (2, 70)]
    assert ([each["version"] for each in rest["items"]], rest["next"]) == ([1], None)
    for key, name in ((stranger, "tight"), (admin, "never")):
        assert (await api.call("GET", f"{POLICIES}/{name}/versions", key)).status_code == 404
