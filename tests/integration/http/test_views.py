"""Views over HTTP: what the model sees, part by part; compared, restored, undone."""

from typing import Any

import pytest

from tests.support.api import Api
from tests.support.compacting import FACTS, compacted, long_thread, receipt


@pytest.fixture
async def made(api: Api, admin: str) -> dict[str, Any]:
    """A compaction that took something away."""
    return await compacted(api, admin, await long_thread(api, admin))


async def shown(api: Api, key: str, made: dict[str, Any], view_id: str | None = None) -> dict[str, Any]:
    """The thread's view."""
    query = {} if view_id is None else {"view_id": view_id}
    return dict(await receipt(api, key, f"/threads/{made['thread_id']}/view", **query))


async def restored(api: Api, key: str, made: dict[str, Any], **body: Any) -> dict[str, Any]:
    """The view after a restore."""
    answered = await api.call("POST", f"/compactions/{made['compaction_id']}/restore", key, json=body)
    assert answered.status_code == 200, answered.text
    return dict(answered.json())


async def test_a_view_shows_what_the_model_is_sent(api: Api, admin: str, made: dict[str, Any]) -> None:
    """A summary in the place of what left, the last turn word for word, and the tokens of each part."""
    view = await shown(api, admin, made)

    assert (view["view_id"], view["is_current"], view["cause"]) == (made["view_id"], True, "compaction")
    assert view["compactions"] == [made["compaction_id"]]
    assert view["tokens"] == sum(part["tokens"] for part in view["parts"]) == made["tokens_after"]
    assert [part["kind"] for part in view["parts"]].count("summary") == 1
    assert view["parts"][-2]["content"].startswith(FACTS[7 % len(FACTS)])
    whole = await shown(api, admin, made, "whole")
    assert (whole["is_current"], whole["version"], len(whole["parts"])) == (False, 1, 16)
    assert whole["tokens"] == made["tokens_before"]


async def test_a_thread_that_was_never_compacted_has_a_view(api: Api, admin: str) -> None:
    """Everything, and it is named."""
    thread = await long_thread(api, admin, turn_count=1)
    view = await receipt(api, admin, f"/threads/{thread}/view")

    assert (view["view_id"], view["is_current"], len(view["parts"])) == ("whole", True, 2)


async def test_a_restore_is_byte_identical_and_can_be_undone(api: Api, admin: str, made: dict[str, Any]) -> None:
    """The hash of what the model is sent is that of before; undone, that of the compaction; and so on."""
    before, after = await shown(api, admin, made, "whole"), await shown(api, admin, made)
    back = await restored(api, admin, made, scope="all")
    assert (await shown(api, admin, made))["render_hash"] == before["render_hash"]
    assert (await receipt(api, admin, f"/compactions/{made['compaction_id']}"))["status"] == "restored"

    path = f"/threads/{made['thread_id']}/views"
    undone = await api.call("POST", f"{path}/{back['view_id']}/undo", admin)
    assert undone.status_code == 200
    assert (await shown(api, admin, made))["render_hash"] == after["render_hash"]
    late = await api.call("POST", f"{path}/{back['view_id']}/undo", admin)
    assert (late.status_code, late.json()["code"]) == (409, "nothing_to_undo")
    again = await api.call("POST", f"{path}/whole/activate", admin)
    assert again.json()["version"] == 5
    assert (await shown(api, admin, made))["render_hash"] == before["render_hash"]
    listed = (await receipt(api, admin, path))["items"]
    assert [each["version"] for each in listed] == [5, 4, 3, 2]


async def test_a_range_and_single_drops_come_back(api: Api, admin: str, made: dict[str, Any]) -> None:
    """Entries as they are, spans as pins; the summary stays, and the difference is reported."""
    first = made["covers"]["from_seq"] + 2
    ranged = await restored(api, admin, made, scope="range", from_seq=first, to_seq=first + 1)
    diff = await receipt(
        api, admin, f"/threads/{made['thread_id']}/views/diff", before=made["view_id"], after=ranged["view_id"]
    )
    assert diff["entries_joined"]
    assert set(diff["entries_joined"]) <= {first, first + 1}
    assert diff["entries_left"] == []

    page = await receipt(api, admin, f"/compactions/{made['compaction_id']}/drops", unit="atom")
    drop = next(each for each in page["items"] if each["sources"][0]["seq"] > first + 1)
    pinned = await restored(api, admin, made, scope="drops", drop_ids=[drop["drop_id"]])
    pins = [item for item in pinned["items"] if item["type"] == "pin"]
    assert [(pin["seq"], pin["start"], pin["end"]) for pin in pins] == [
        (drop["sources"][0]["seq"], drop["sources"][0]["start"], drop["sources"][0]["end"])
    ]
    assert any(
        part["kind"] == "pin" and drop["text"] in part["content"] for part in (await shown(api, admin, made))["parts"]
    )


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"scope": "range", "from_seq": 1}, "$.to_seq"),
        ({"scope": "range", "from_seq": 9, "to_seq": 1}, "$.to_seq"),
        ({"scope": "all", "drop_ids": ["x"]}, "$.drop_ids"),
        ({"scope": "drops"}, "$.drop_ids"),
        ({"scope": "drops", "drop_ids": []}, "$.drop_ids"),
        ({"scope": "some"}, "$.scope"),
    ],
    ids=["open range", "backward", "too much", "nothing", "empty", "unknown"],
)
async def test_a_restore_that_says_too_little_or_too_much_is_refused(
    api: Api, admin: str, made: dict[str, Any], body: dict[str, Any], path: str
) -> None:
    """With the place, and the view stays."""
    refused = await api.call("POST", f"/compactions/{made['compaction_id']}/restore", admin, json=body)

    assert (refused.status_code, refused.json()["path"]) == (422, path)
    assert (await shown(api, admin, made))["view_id"] == made["view_id"]


async def test_what_is_no_drop_is_not_pinned(api: Api, admin: str, made: dict[str, Any]) -> None:
    """404, and the view stays."""
    body = {"scope": "drops", "drop_ids": [f"{made['compaction_id']}.{'0' * 24}"]}

    refused = await api.call("POST", f"/compactions/{made['compaction_id']}/restore", admin, json=body)

    assert refused.status_code == 404
    assert (await shown(api, admin, made))["view_id"] == made["view_id"]


async def test_a_restore_with_a_key_moves_the_view_once(api: Api, admin: str, made: dict[str, Any]) -> None:
    """The answer is replayed."""
    path, headers = f"/compactions/{made['compaction_id']}/restore", {"idempotency-key": "back"}
    first = await api.call("POST", path, admin, json={"scope": "all"}, headers=headers)
    again = await api.call("POST", path, admin, json={"scope": "all"}, headers=headers)

    assert (first.status_code, again.content) == (200, first.content)
    assert (await shown(api, admin, made))["version"] == first.json()["version"]


async def test_a_span_is_pinned_word_for_word(api: Api, admin: str, made: dict[str, Any]) -> None:
    """Of an entry that the summary stands for; what is not there, or is shown as it is, is refused."""
    path, seq = f"/threads/{made['thread_id']}/pins", made["covers"]["from_seq"]
    said = {part["seq"]: part["content"] for part in (await shown(api, admin, made, "whole"))["parts"]}

    pinned = await api.call("POST", path, admin, json={"spans": [{"seq": seq, "start": 0, "end": 12}]})

    assert pinned.status_code == 200
    (pin,) = [part for part in (await shown(api, admin, made))["parts"] if part["kind"] == "pin"]
    assert said[seq][:12] in pin["content"]
    last = max(said)
    for span in (
        {"seq": last, "start": 0, "end": 1},
        {"seq": seq, "start": 0, "end": 10**9},
        {"seq": seq, "start": 0, "end": 1, "part": 7},
    ):
        refused = await api.call("POST", path, admin, json={"spans": [span]})
        assert (refused.status_code, refused.json()["code"]) == (422, "view_broken"), span


async def test_the_journal_records_every_move_without_a_word_of_the_thread(api: Api, admin: str) -> None:
    """Who did what, to which view, and which entries left it; the chain verifies."""
    thread_id = await long_thread(api, admin)
    done = await compacted(api, admin, thread_id)
    await api.call("POST", f"/threads/{thread_id}/views/whole/activate", admin)
    lines = (await receipt(api, admin, f"/threads/{thread_id}/journal", limit=100))["items"]
    verified = await receipt(api, admin, f"/threads/{thread_id}/journal/verify")

    made, moved = [each for each in lines if each["kind"] == "view_changed"]
    assert made["payload"] == {
        "view_id": done["view_id"],
        "version": 2,
        "act": "compacted",
        "by": done["requested_by"],
        "compaction_id": done["compaction_id"],
        "covers": [done["covers"]["from_seq"], done["covers"]["to_seq"]],
    }
    assert (moved["payload"]["act"], moved["run_id"]) == ("activated", None)
    assert verified["holds"] is True


async def test_a_summary_is_expanded_and_the_view_stays(api: Api, admin: str) -> None:
    """Word for word, whole messages, page by page within the budget; an erased or foreign one is not there."""
    thread_id = await long_thread(api, admin)
    said = (await receipt(api, admin, f"/threads/{thread_id}/view"))["parts"]
    done = await compacted(api, admin, thread_id)
    before = await receipt(api, admin, f"/threads/{thread_id}/view")
    path = f"/threads/{thread_id}/segments/{done['compaction_id']}/expand"

    messages: list[dict[str, Any]] = []
    spec: dict[str, Any] = {"budget_tokens": 500}
    while True:
        answered = await api.call("POST", path, admin, json=spec)
        assert answered.status_code == 200, answered.text
        page = answered.json()
        assert 0 < page["tokens"] <= 500
        messages += page["messages"]
        if page["next_seq"] is None:
            break
        spec = {"budget_tokens": 500, "from_seq": page["next_seq"]}
    whole = (await api.call("POST", path, admin, json={"budget_tokens": 100_000})).json()
    least = (await api.call("POST", path, admin, json={"budget_tokens": 1})).json()
    other = await api.call(
        "POST", f"/threads/{await long_thread(api, admin, 1)}/segments/{done['compaction_id']}/expand", admin
    )

    texts = {part["seq"]: part["content"] for part in said}
    assert [each["text"] for each in messages] == [texts[each["seq"]] for each in messages]
    assert (messages[0]["seq"], messages[-1]["seq"]) == (done["covers"]["from_seq"], done["covers"]["to_seq"])
    assert (whole["messages"], whole["next_seq"]) == (messages, None)
    assert len(least["messages"]) == 1
    assert other.status_code == 404
    assert await receipt(api, admin, f"/threads/{thread_id}/view") == before


async def test_pages_of_views_are_the_newest_first(api: Api, admin: str) -> None:
    """Each once; the cursor holds its place while new ones come."""
    thread_id = await long_thread(api, admin)
    await compacted(api, admin, thread_id)
    for _ in range(3):
        await api.call("POST", f"/threads/{thread_id}/views/whole/activate", admin)
    path = f"/threads/{thread_id}/views"
    first = await receipt(api, admin, path, limit=3)
    await api.call("POST", f"/threads/{thread_id}/views/whole/activate", admin)
    rest = await receipt(api, admin, path, limit=3, cursor=first["next"])

    assert [each["version"] for each in (*first["items"], *rest["items"])] == [5, 4, 3, 2]
    assert rest["next"] is None
