"""The state of a thread over HTTP: updates, forks, and the way back to every checkpoint."""

from typing import Any

import pytest

from tests.support.api import Api
from threadmark.app.access import Scope
from threadmark.app.listing.pages import PAGE_SIZE_MAX

CALL = {"id": "c1", "name": "add", "args": {"a": 1, "b": 2}}
RESULT = {"role": "tool", "content": "3", "tool_call_id": "c1"}


@pytest.fixture
async def key(api: Api) -> str:
    """A key that reads and runs."""
    return await api.key(Scope.READ, Scope.RUN)


@pytest.fixture
async def thread(api: Api, key: str) -> str:
    """The path of a new thread."""
    return f"/threads/{(await api.call('POST', '/threads', key)).json()['thread_id']}"


async def update(api: Api, key: str, thread: str, *messages: Any, **rest: Any) -> Any:
    """The response to an update."""
    return await api.call("POST", f"{thread}/state", key, json={"values": {"messages": list(messages)}, **rest})


async def said(api: Api, key: str, thread: str, *messages: Any, **rest: Any) -> str:
    """Update the thread; the id of the checkpoint."""
    response = await update(api, key, thread, *messages, **rest)
    assert response.status_code == 200, response.text
    return str(response.json()["checkpoint_id"])


async def state(api: Api, key: str, thread: str) -> dict[str, Any]:
    """The thread as it stands."""
    return dict((await api.call("GET", f"{thread}/state", key)).json())


async def history(api: Api, key: str, thread: str, **page: Any) -> list[dict[str, Any]]:
    """A page of the thread's history."""
    response = await api.call("POST", f"{thread}/history", key, json=page)
    assert response.status_code == 200, response.text
    return list(response.json())


def contents(shown: dict[str, Any]) -> list[str]:
    """What was said."""
    return [each["content"] for each in shown["values"]["messages"]]


async def test_messages_are_added_replaced_and_removed_by_id(api: Api, key: str, thread: str) -> None:
    """As the reducer of the dialect does: an id that is known keeps its place."""
    await said(
        api, key, thread, {"role": "user", "content": "one", "id": "1"}, {"role": "ai", "content": "two", "id": "2"}
    )
    await said(api, key, thread, {"role": "user", "content": "ONE", "id": "1"}, {"role": "user", "content": "three"})
    assert contents(await state(api, key, thread)) == ["ONE", "two", "three"]

    await said(api, key, thread, {"type": "remove", "id": "2"})
    assert contents(await state(api, key, thread)) == ["ONE", "three"]

    await said(
        api, key, thread, {"type": "remove", "id": "__remove_all__"}, {"role": "user", "content": "anew", "id": "1"}
    )
    assert contents(await state(api, key, thread)) == ["anew"]


async def test_the_next_node_follows_from_what_stands_last(api: Api, key: str, thread: str) -> None:
    """After a person the model, after a call the tools, after its result the model, after a reply nothing."""
    expected = [("hello", ["model"]), ({"role": "ai", "content": "", "tool_calls": [CALL]}, ["tools"])]
    expected += [(RESULT, ["model"]), ({"role": "ai", "content": "3"}, [])]

    for message, following in expected:
        await said(api, key, thread, message)
        shown = await state(api, key, thread)
        assert shown["next"] == following
        assert [task["name"] for task in shown["tasks"]] == following


async def test_a_node_may_be_named(api: Api, key: str, thread: str) -> None:
    """After `model` nothing follows but open calls; `tools` has to have answered; there are no other nodes."""
    await said(api, key, thread, "hello", as_node="model")
    assert (await state(api, key, thread))["next"] == []

    refused = await update(api, key, thread, {"role": "ai", "content": "hi"}, as_node="tools")
    assert (refused.status_code, refused.json()["path"]) == (422, "$.as_node")
    assert (await update(api, key, thread, as_node="__end__")).status_code == 422
    await said(api, key, thread, {"role": "ai", "content": "", "tool_calls": [CALL]}, RESULT, as_node="tools")
    assert (await state(api, key, thread))["next"] == ["model"]


@pytest.mark.parametrize(
    "body",
    [
        {"values": {"n": 1}},
        {"values": []},
        {"values": "hi"},
        {"values": {"messages": {"role": "user"}}},
        {"values": {"messages": [{"type": "remove", "id": "unknown"}]}},
        {"values": {"messages": [RESULT]}},
        {"values": {"messages": [{"role": "ai", "content": "", "tool_calls": [CALL]}, "and now?"]}},
        {"values": {}, "checkpoint_id": "now"},
        {"values": {}, "checkpoint": {"checkpoint_ns": "inner"}},
        {"values": {}, "checkpoint": {"branch": 1}},
        {"values": {}, "by": "somebody"},
    ],
)
async def test_an_update_that_cannot_be_honoured_changes_nothing(
    api: Api, key: str, thread: str, body: dict[str, Any]
) -> None:
    """422 with a place, and the thread stands where it stood."""
    await said(api, key, thread, "hello")
    before = await state(api, key, thread)

    response = await api.call("POST", f"{thread}/state", key, json=body)

    assert response.status_code == 422
    assert response.json()["path"]
    assert await state(api, key, thread) == before


async def test_every_checkpoint_can_be_looked_at(api: Api, key: str, thread: str) -> None:
    """By its id in the path, by its id in a body, and the present one without an id."""
    first = await said(api, key, thread, "one")
    second = await said(api, key, thread, "two")

    at_first = (await api.call("GET", f"{thread}/state/{first}", key)).json()
    asked = {"checkpoint": {"thread_id": thread.removeprefix("/threads/"), "checkpoint_id": first}}
    by_body = (await api.call("POST", f"{thread}/state/checkpoint", key, json=asked)).json()
    present = (await api.call("POST", f"{thread}/state/checkpoint", key, json={"checkpoint": {}})).json()

    assert contents(at_first) == ["one"]
    assert at_first["checkpoint_id"] == first
    assert at_first["parent_checkpoint"] is None
    assert by_body == at_first
    assert (present["checkpoint_id"], present["parent_checkpoint_id"]) == (second, first)
    assert present == await state(api, key, thread)


async def test_a_checkpoint_of_another_thread_is_none_of_this_one(api: Api, key: str, thread: str) -> None:
    """404, though it is well formed, and even where its seq exists here too."""
    other = f"/threads/{(await api.call('POST', '/threads', key)).json()['thread_id']}"
    foreign = await said(api, key, other, "one")
    await said(api, key, thread, "one")

    for response in (
        await api.call("GET", f"{thread}/state/{foreign}", key),
        await update(api, key, thread, "two", checkpoint_id=foreign),
        await api.call("POST", f"{thread}/history", key, json={"before": foreign}),
    ):
        assert (response.status_code, response.json()["code"]) == (404, "not_found")


async def test_an_update_from_a_checkpoint_forks_and_keeps_the_old_branch(api: Api, key: str, thread: str) -> None:
    """History shows both, as a tree; the thread stands on the new branch."""
    first = await said(api, key, thread, "one")
    old = await said(api, key, thread, {"role": "ai", "content": "old"})
    new = await said(api, key, thread, {"role": "ai", "content": "new"}, checkpoint_id=first)

    assert contents(await state(api, key, thread)) == ["one", "new"]
    tree = [(each["checkpoint_id"], each["parent_checkpoint_id"]) for each in await history(api, key, thread)]
    assert tree == [(new, first), (old, first), (first, None)]
    assert contents((await api.call("GET", f"{thread}/state/{old}", key)).json()) == ["one", "old"]

    back = await said(api, key, thread, "again", checkpoint={"checkpoint_id": old})
    assert contents(await state(api, key, thread)) == ["one", "old", "again"]
    assert (await history(api, key, thread, limit=1))[0]["parent_checkpoint_id"] == old
    assert (await api.call("GET", f"{thread}/journal/verify", key)).json()["holds"] is True
    assert back != new


async def test_an_update_from_the_present_checkpoint_is_no_fork(api: Api, key: str, thread: str) -> None:
    """Clients name the checkpoint that they look at; one branch is enough for them."""
    present = await said(api, key, thread, "one")
    await said(api, key, thread, "two", checkpoint_id=present)

    journal = (await api.call("GET", f"{thread}/journal", key)).json()
    assert [each["branch"] for each in journal["items"]] == [0, 0]


async def test_history_is_walked_once_whatever_is_written_between_the_pages(api: Api, key: str, thread: str) -> None:
    """`before` is a cursor: an id, a checkpoint, or a config; updates and forks of a moment ago are no part of it."""
    made = [await said(api, key, thread, str(number)) for number in range(7)]

    walked: list[str] = []
    before: Any = None
    while page := await history(api, key, thread, limit=3, before=before):
        walked += [each["checkpoint_id"] for each in page]
        await said(api, key, thread, "later", checkpoint_id=made[2])
        last = page[-1]["checkpoint"]
        before = [last["checkpoint_id"], last, {"configurable": last}][len(walked) % 3]

    assert walked == list(reversed(made))


async def test_history_is_filtered_by_metadata_and_by_checkpoint(api: Api, key: str, thread: str) -> None:
    """Whole values of top-level keys; one checkpoint alone."""
    made = [await said(api, key, thread, str(number)) for number in range(3)]

    by_step = await history(api, key, thread, metadata={"source": "update", "step": 0})
    assert [each["checkpoint_id"] for each in by_step] == [made[1]]
    assert await history(api, key, thread, metadata={"source": "loop"}) == []
    assert await history(api, key, thread, metadata={"a') OR 1=1 --": 1}) == []
    exactly = await history(api, key, thread, checkpoint={"checkpoint_id": made[0]})
    assert [each["checkpoint_id"] for each in exactly] == [made[0]]
    assert len(await history(api, key, thread, checkpoint={})) == 3
    got = (await api.call("GET", f"{thread}/history?limit=2&before={made[2]}", key)).json()
    assert [each["checkpoint_id"] for each in got] == [made[1], made[0]]


async def test_only_the_selected_fields_are_shown(api: Api, key: str, thread: str) -> None:
    """In a query, in a body, and for every state of a history."""
    await said(api, key, thread, "one")

    assert sorted((await api.call("GET", f"{thread}/state?select=next&select=values.messages", key)).json()) == [
        "next",
        "values",
    ]
    assert [sorted(each) for each in await history(api, key, thread, select=["checkpoint_id"])] == [["checkpoint_id"]]
    assert (await api.call("GET", f"{thread}/state?select=tenant_id", key)).status_code == 422


@pytest.mark.parametrize(
    "page", [{"limit": 0}, {"limit": PAGE_SIZE_MAX + 1}, {"before": 5}, {"before": "x"}, {"after": 1}]
)
async def test_a_page_that_cannot_be_made_is_refused(api: Api, key: str, thread: str, page: dict[str, Any]) -> None:
    """Its size is bounded, and a cursor is a checkpoint."""
    assert (await api.call("POST", f"{thread}/history", key, json=page)).status_code == 422


async def test_the_journal_is_read_in_both_directions(api: Api, key: str, thread: str) -> None:
    """`after` and `before` are places between entries; each entry is read once."""
    for number in range(7):
        await said(api, key, thread, str(number))

    first = (await api.call("GET", f"{thread}/journal?limit=3", key)).json()
    forward = list(first["items"])
    page = first
    while page["next"] is not None:
        page = (await api.call("GET", f"{thread}/journal?limit=3&after={page['next']}", key)).json()
        forward += page["items"]
    backward: list[dict[str, Any]] = list(page["items"])
    while page["previous"] is not None:
        page = (await api.call("GET", f"{thread}/journal?limit=3&before={page['previous']}", key)).json()
        backward = page["items"] + backward

    assert [each["seq"] for each in forward] == list(range(1, 8))
    assert backward == forward
    assert {each["kind"] for each in forward} == {"state_updated"}
    assert forward[0]["payload"]["messages"][0]["content"] == "0"
    assert len({each["digest"] for each in forward}) == 7
    between = (await api.call("GET", f"{thread}/journal?after=2&before=5", key)).json()
    assert ([each["seq"] for each in between["items"]], between["next"]) == ([3, 4], None)


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=201", "after=-1", "after=x", "before=-1", "cursor=x", "after=" + "9" * 30]
)
async def test_a_place_in_the_journal_is_a_number(api: Api, key: str, thread: str, query: str) -> None:
    """Anything else is refused."""
    assert (await api.call("GET", f"{thread}/journal?{query}", key)).status_code == 422


async def test_an_altered_entry_is_found(api: Api, key: str, thread: str) -> None:
    """The digest of each entry covers all before it; what was changed in the file is named by its seq."""
    for number in range(3):
        await said(api, key, thread, str(number))

    def forge(connection: Any) -> None:
        connection.exec_driver_sql("UPDATE entry SET payload = CAST(replace(payload, '1', '9') AS BLOB) WHERE seq = 2")

    await api.resources.database.write(forge)
    verified = (await api.call("GET", f"{thread}/journal/verify", key)).json()

    assert (verified["holds"], verified["damage_count"], verified["damages"][0]["seq"]) == (False, 1, 2)
