"""Recalls of drops over HTTP: who asked for what, and what is suggested as a pin because it is wanted again."""

from typing import Any

import pytest

from tests.support.api import Api
from tests.support.compacting import compacted, long_thread, receipt


@pytest.fixture
async def made(api: Api, admin: str) -> dict[str, Any]:
    """The receipt of a compaction that dropped something."""
    return await compacted(api, admin, await long_thread(api, admin))


async def drops_of(api: Api, key: str, made: dict[str, Any]) -> list[dict[str, Any]]:
    """Drops that have a place."""
    page = await receipt(
        api, key, f"/compactions/{made['compaction_id']}/drops", limit=50, unit="atom", status="dropped"
    )
    return [each for each in page["items"] if each["sources"]]


async def opened(api: Api, key: str, drop_id: str) -> None:
    """Look at a drop in its place."""
    await receipt(api, key, f"/drops/{drop_id}/source")


async def test_what_is_opened_twice_is_suggested_until_it_is_pinned(api: Api, admin: str, made: dict[str, Any]) -> None:
    """Its span is what a pin takes; pinned, it is in the view, and no suggestion any more."""
    first, second = (await drops_of(api, admin, made))[:2]
    path = f"/threads/{made['thread_id']}/pins"
    await opened(api, admin, first["drop_id"])
    await opened(api, admin, second["drop_id"])
    assert (await receipt(api, admin, f"{path}/suggestions"))["items"] == []

    await opened(api, admin, first["drop_id"])
    (suggested,) = (await receipt(api, admin, f"{path}/suggestions"))["items"]
    span = suggested["span"]
    view = await receipt(api, admin, f"/threads/{made['thread_id']}/view", view_id="whole")
    said = next(part["content"] for part in view["parts"] if part["seq"] == span["seq"])
    pinned = await api.call("POST", path, admin, json={"spans": [span]})

    assert (suggested["drop_id"], suggested["recall_count"]) == (first["drop_id"], 2)
    assert suggested["text"] == said[span["start"] : span["end"]]
    assert pinned.status_code == 200
    assert (await receipt(api, admin, f"{path}/suggestions"))["items"] == []


async def test_every_recall_is_in_the_log(api: Api, admin: str, made: dict[str, Any]) -> None:
    """Which drop, how, when and by whom, newest first, page by page; a search alone is none, and no word is kept."""
    first, second = (await drops_of(api, admin, made))[:2]
    await receipt(api, admin, f"/threads/{made['thread_id']}/drops", q=first["text"])
    await opened(api, admin, first["drop_id"])
    api.hands.pass_s(5)
    await opened(api, admin, first["drop_id"])
    api.hands.pass_s(5)
    body = {"scope": "drops", "drop_ids": [second["drop_id"]]}
    for _ in range(2):
        headers = {"idempotency-key": "restore"}
        done = await api.call(
            "POST", f"/compactions/{made['compaction_id']}/restore", admin, json=body, headers=headers
        )
        assert done.status_code == 200
    path = f"/threads/{made['thread_id']}/drops/recalls"
    page = await receipt(api, admin, path, limit=2)
    rest = await receipt(api, admin, path, limit=2, cursor=page["next"])

    listed = [*page["items"], *rest["items"]]
    assert [(each["drop_id"], each["how"]) for each in listed] == [
        (second["drop_id"], "restored"),
        (first["drop_id"], "opened"),
        (first["drop_id"], "opened"),
    ]
    assert {each["requested_by"] for each in listed} == {made["requested_by"]}
    assert [each["at"] for each in listed] == sorted((each["at"] for each in listed), reverse=True)
    assert rest["next"] is None
