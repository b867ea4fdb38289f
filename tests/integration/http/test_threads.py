"""Threads over HTTP: made, found, labelled, copied and deleted."""

import asyncio
from functools import partial
from typing import Any

import pytest

from tests.support.api import Api
from threadmark.app.access import Scope
from threadmark.app.access.key import DEFAULT_TENANT
from threadmark.state import copy_thread, get_thread, unfinished_copies
from threadmark.state.append import thread_copies

THREAD = "0b0c1e9a-3a7e-4d0b-9a52-1f2e3d4c5b6a"
NOWHERE = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
async def key(api: Api) -> str:
    """A key that reads and runs."""
    return await api.key(Scope.READ, Scope.RUN)


async def made(api: Api, key: str, **spec: Any) -> dict[str, Any]:
    """A new thread."""
    response = await api.call("POST", "/threads", key, json=spec)
    assert response.status_code == 200, response.text
    return dict(response.json())


async def say(api: Api, key: str, thread_id: str, *messages: Any, **update: Any) -> str:
    """Write messages into a thread; the checkpoint that this makes."""
    body = {"values": {"messages": list(messages)}, **update}
    response = await api.call("POST", f"/threads/{thread_id}/state", key, json=body)
    assert response.status_code == 200, response.text
    return str(response.json()["checkpoint_id"])


async def test_a_new_thread_is_idle_and_holds_nothing(api: Api, key: str) -> None:
    """Values are null until something was said."""
    thread = await made(api, key, metadata={"user": "ada"})

    assert thread["status"] == "idle"
    assert thread["values"] is None
    assert (thread["metadata"], thread["interrupts"], thread["error"]) == ({"user": "ada"}, {}, None)
    assert thread == (await api.call("GET", f"/threads/{thread['thread_id']}", key)).json()


async def test_a_body_is_not_needed(api: Api, key: str) -> None:
    """`curl -X POST /threads` makes a thread."""
    assert (await api.call("POST", "/threads", key)).status_code == 200


async def test_an_id_of_ones_own_is_taken_once(api: Api, key: str) -> None:
    """The second request gets 409, or the first thread if it asked for that; its metadata changes nothing."""
    first = await made(api, key, thread_id=THREAD.upper(), metadata={"a": 1})

    again = await api.call("POST", "/threads", key, json={"thread_id": THREAD})
    kept = await made(api, key, thread_id=THREAD, metadata={"a": 2}, if_exists="do_nothing")

    assert first["thread_id"] == THREAD
    assert (again.status_code, again.json()["detail"]) == (409, f"Thread with ID {THREAD} already exists")
    assert kept == first


@pytest.mark.parametrize(
    "spec",
    [{"ttl": 5}, {"supersteps": []}, {"if_exists": "replace"}, {"metadata": []}, {"metadata": "x"}, {"tenant_id": "b"}],
)
async def test_what_is_not_honoured_is_refused(api: Api, key: str, spec: dict[str, Any]) -> None:
    """A time to live, steps to apply, a tenant: 422, and no thread is made."""
    assert (await api.call("POST", "/threads", key, json=spec)).status_code == 422
    assert (await api.call("POST", "/threads/count", key)).json() == 0


@pytest.mark.parametrize("text", ["my-thread", "1", "%2e%2e", f"{THREAD}x", f"urn:uuid:{THREAD}", "None"])
async def test_an_id_is_a_uuid(api: Api, key: str, text: str) -> None:
    """In a body and in a path; anything else is refused before anything is looked up."""
    in_body = await api.call("POST", "/threads", key, json={"thread_id": text})
    in_path = await api.call("GET", f"/threads/{text}", key)

    expected = (422, "Invalid thread ID: must be a UUID")
    assert (in_body.status_code, in_body.json()["detail"]) == expected
    assert (in_path.status_code, in_path.json()["detail"]) == expected


async def test_metadata_is_merged_key_by_key(api: Api, key: str) -> None:
    """A key that is named takes its new value whole; the others stay."""
    thread = await made(api, key, metadata={"a": {"x": 1}, "b": 2})
    path = f"/threads/{thread['thread_id']}"

    patched = await api.call("PATCH", path, key, json={"metadata": {"a": {"y": 2}, "c": None}})
    quiet = await api.call("PATCH", path, key, json={"metadata": {"b": 3}}, headers={"prefer": "return=minimal"})

    assert patched.json()["metadata"] == {"a": {"y": 2}, "b": 2, "c": None}
    assert (quiet.status_code, quiet.content) == (204, b"")
    assert (await api.call("GET", path, key)).json()["metadata"] == {"a": {"y": 2}, "b": 3, "c": None}


async def test_text_keeps_its_code_points(api: Api, key: str) -> None:
    """NUL in a message, in a name of metadata and in its value comes back between its neighbours."""
    text = "abc\x00def"
    thread = await made(api, key, metadata={text: text})
    await say(api, key, thread["thread_id"], {"role": "user", "content": text})

    shown = (await api.call("GET", f"/threads/{thread['thread_id']}", key)).json()

    assert shown["metadata"] == {text: text}
    assert shown["values"]["messages"][0]["content"] == text
    found = await api.call("POST", "/threads/search", key, json={"metadata": {text: text}})
    assert [each["thread_id"] for each in found.json()] == [thread["thread_id"]]


@pytest.mark.parametrize("path", ["metadata", "message"])
async def test_a_lone_surrogate_is_refused(api: Api, key: str, path: str) -> None:
    """No UTF-8 store can keep it: 422 with the place, and nothing is kept."""
    thread = await made(api, key)
    bodies = {
        "metadata": ("PATCH", f"/threads/{thread['thread_id']}", b'{"metadata": {"a": "\\ud800"}}'),
        "message": (
            "POST",
            f"/threads/{thread['thread_id']}/state",
            b'{"values": {"messages": [{"role": "user", "content": "\\ud800"}]}}',
        ),
    }
    method, url, body = bodies[path]

    response = await api.call(method, url, key, content=body, headers={"content-type": "application/json"})

    assert (response.status_code, response.json()["code"]) == (422, "lone_surrogate")
    assert (await api.call("GET", f"/threads/{thread['thread_id']}", key)).json() == thread


async def test_a_deleted_thread_is_gone(api: Api, key: str) -> None:
    """404 from then on, also for a second deletion; its id may be taken again and begins empty."""
    thread = await made(api, key, thread_id=THREAD)
    await say(api, key, THREAD, "hello")

    assert (await api.call("DELETE", f"/threads/{THREAD}", key)).status_code == 204
    assert (await api.call("GET", f"/threads/{THREAD}", key)).status_code == 404
    assert (await api.call("DELETE", f"/threads/{THREAD}", key)).status_code == 404
    again = await made(api, key, thread_id=THREAD)
    assert (again["values"], again["metadata"]) == (None, thread["metadata"])
    assert (await api.call("POST", f"/threads/{THREAD}/history", key)).json() == []


async def test_a_copy_has_the_messages_and_goes_its_own_way(api: Api, key: str) -> None:
    """What is said in one does not appear in the other; its journal verifies."""
    thread = await made(api, key, metadata={"a": 1})
    await say(api, key, thread["thread_id"], "hello", {"role": "ai", "content": "hi"})

    copy = (await api.call("POST", f"/threads/{thread['thread_id']}/copy", key)).json()
    await say(api, key, copy["thread_id"], "more")

    contents = [each["content"] for each in copy["values"]["messages"]]
    assert (contents, copy["metadata"]) == (["hello", "hi"], {"a": 1})
    assert copy["thread_id"] != thread["thread_id"]
    state = (await api.call("GET", f"/threads/{thread['thread_id']}/state", key)).json()
    assert len(state["values"]["messages"]) == 2
    verified = (await api.call("GET", f"/threads/{copy['thread_id']}/journal/verify", key)).json()
    assert (verified["holds"], verified["head_seq"]) == (True, 2)


async def test_a_deleted_thread_takes_what_is_left_of_its_copies_with_it(api: Api, key: str) -> None:
    """A process died while it copied: the entries that it had written go with the thread that they are of."""
    thread_id = (await made(api, key))["thread_id"]
    await say(api, key, thread_id, "hello")
    database = api.resources.database
    source = await database.read(partial(get_thread, tenant_id=DEFAULT_TENANT, thread_id=thread_id))

    def die(*_: object) -> None:
        raise asyncio.CancelledError

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(thread_copies, "_clear", die)
        with pytest.raises(asyncio.CancelledError):
            await copy_thread(database, DEFAULT_TENANT, thread_id, now_us=lambda: 0, look=die, receipt=lambda _: None)
    assert len(await database.read(partial(unfinished_copies, source=source.number))) == 1

    assert (await api.call("DELETE", f"/threads/{thread_id}", key)).status_code == 204

    assert await database.read(partial(unfinished_copies, source=source.number)) == []


@pytest.mark.parametrize("path", ["", "/state", "/history", "/journal", "/journal/verify", "/waits"])
async def test_a_thread_that_never_was_is_404(api: Api, key: str, path: str) -> None:
    """404 with one sentence, on every route."""
    response = await api.call("GET", f"/threads/{NOWHERE}{path}", key)

    assert (response.status_code, response.json()["code"]) == (404, "not_found")
    assert response.json()["detail"] == f"Thread with ID {NOWHERE} not found"


async def test_the_state_of_a_thread_without_words_is_empty(api: Api, key: str) -> None:
    """200, and every field is there."""
    thread = await made(api, key)

    state = (await api.call("GET", f"/threads/{thread['thread_id']}/state", key)).json()

    assert (state["values"], state["next"], state["tasks"], state["checkpoint"]) == ({}, [], [], None)
    assert (await api.call("POST", f"/threads/{thread['thread_id']}/history", key)).json() == []
