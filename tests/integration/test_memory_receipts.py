"""A change of memory and the answer to its idempotency key are one commit: two servers, a lost note, time, erasure."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, func, select, text

from tests.integration.test_memory_erasing import files_with
from tests.support.api import Api, open_api
from tests.support.memory_house import NOW
from tests.support.receipt_writes import Slow, named
from threadmark.app.access import Scope
from threadmark.app.requests import idempotent_requests
from threadmark.memory import Database, Forget
from threadmark.memory.store.job_tables import erasure, receipt
from threadmark.memory.store.receipts import write_once

ITEM = {"namespace": ["users", "7"], "text": "likes tea"}
US = 1_000_000


@pytest.fixture(params=["sqlite", "postgresql"])
async def two(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Api, Api]]:
    """Two servers over the same two databases, whose clocks stand still."""
    environment: dict[str, str] = {}
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_url")
        environment = {"THREADMARK_STATE_DATABASE_URL": url, "THREADMARK_MEMORY_DATABASE_URL": url}
    async with AsyncExitStack() as stack:
        yield (
            await stack.enter_async_context(open_api(tmp_path, environment=environment)),
            await stack.enter_async_context(open_api(tmp_path, environment=environment)),
        )


async def post(api: Api, admin: str, path: str, body: Any, key: str = "") -> Any:
    """The response to a change; a key names it."""
    headers = {"idempotency-key": key} if key else {}
    return await api.call(
        "POST", f"/memories{path}", admin, headers=headers, **({} if body is None else {"json": body})
    )


async def ask_each(api: Api, admin: str, asked: Callable[[str, Any], Any]) -> list[Any]:
    """Have `asked` ask for every kind of change, on what the ones before have left; what it answered, by kind."""
    (kept,) = (await asked("", {"items": [ITEM | {"source": {"thread_ref": "t-1"}}]}))["items"]
    assert (await asked(f"/{kept['memory_id']}/retract", {"reason": "no"}))["retracted"] == [kept["memory_id"]]
    (again,) = (await asked(f"/{kept['memory_id']}/undo", None))["restored"]
    untrusted = ITEM | {"namespace": ["shared"], "trust": "web", "text": "drinks mate"}
    (apart,) = (await post(api, admin, "", {"items": [untrusted]})).json()["items"]
    approved = await asked(f"/{apart['memory_id']}/approve", None)
    held = await asked("/quarantine", {"source": {"thread_ref": "t-1"}, "reason": "odd"})
    released = await asked(f"/quarantine/{held['quarantine_id']}/release", None)
    erased = await asked("/erase", {"source": {"thread_ref": "t-1"}})
    assert (approved["text"], approved["status"]) == ("drinks mate", "current")
    assert (held["held_count"], released["released_count"]) == (1, 1)
    # Not done where the index is another process's: that one finishes it.
    assert erased["counts"]["assertions"] == 2
    return [kept, again, approved, held, released, erased]


def forget_notes(api: Api) -> None:
    """Take out of the state database what it noted of keys: what a crash right after memory's commit leaves."""
    engine = create_engine(api.resources.settings.state_database_url)
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM receipt"))
    engine.dispose()


async def test_equal_changes_at_two_servers_are_one(two: tuple[Api, Api]) -> None:
    """Remember, retract, undo, approve, quarantine, release, erase: one does it, and all have its answer."""
    first, second = two
    admin = await first.key(Scope.ADMIN)

    async def asked(path: str, body: Any) -> Any:
        answers = await asyncio.gather(*(post(each, admin, path, body, f"k{path}") for each in [first, second] * 3))
        assert [each.status_code for each in answers] == [200] * 6, [each.text for each in answers]
        assert sum("idempotent-replayed" not in each.headers for each in answers) == 1
        (one,) = {each.content for each in answers}
        return json.loads(one)

    await ask_each(first, admin, asked)

    erasures = partial(_count, table=erasure)
    assert await first.resources.wired.recollection._database.read(erasures) == 1


async def test_an_answer_outlives_the_note_of_its_key(two: tuple[Api, Api]) -> None:
    """A retry after a crash between the two databases gets the same bytes, and nothing is done twice."""
    first, second = two
    admin = await first.key(Scope.ADMIN)

    async def asked(path: str, body: Any) -> Any:
        done = await post(first, admin, path, body, f"k{path}")
        forget_notes(first)
        again = await post(second, admin, path, body, f"k{path}")
        assert (again.status_code, again.content) == (200, done.content)
        once_more = await post(first, admin, path, body, f"k{path}")
        assert (once_more.content, once_more.headers["idempotent-replayed"]) == (done.content, "true")
        return done.json()

    await ask_each(first, admin, asked)


async def test_a_key_stands_for_one_request_also_after_its_note_was_lost(two: tuple[Api, Api]) -> None:
    """Another body is refused and changes nothing; the first is answered even when its time has passed."""
    first, second = two
    admin = await first.key(Scope.ADMIN)
    until = first.hands.now() + timedelta(seconds=60)
    body = {"items": [ITEM | {"expires_at": until.isoformat()}]}
    done = await post(first, admin, "", body, "k")
    forget_notes(first)
    for api in two:
        api.hands.pass_s(120)

    refused = await post(second, admin, "", {"items": [ITEM | {"text": "likes coffee"}]}, "k")
    again = await post(second, admin, "", body, "k")

    assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_key_reused")
    assert (again.status_code, again.content) == (200, done.content)
    other_route = await second.call("POST", "/threads", admin, json={}, headers={"idempotency-key": "k"})
    assert (other_route.status_code, other_route.json()["code"]) == (422, "idempotency_key_reused")


async def test_a_refused_change_leaves_its_key_free(two: tuple[Api, Api]) -> None:
    """The same key may come again with a better request."""
    first, second = two
    admin = await first.key(Scope.ADMIN)
    refused = await post(first, admin, "", {"items": [ITEM | {"text": " "}]}, "k")

    made = await post(second, admin, "", {"items": [ITEM]}, "k")

    assert (refused.status_code, made.status_code) == (422, 200)


async def test_a_change_that_another_server_takes_long_for_is_asked_for_later(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """409 with `Retry-After`, and nothing is changed; other changes go on, as nobody waits in the database."""
    monkeypatch.setattr(idempotent_requests, "WAIT_S", 0.1)
    environment = {"THREADMARK_STATE_DATABASE_URL": postgres_url, "THREADMARK_MEMORY_DATABASE_URL": postgres_url}
    async with open_api(tmp_path, environment=environment) as api:
        admin = await api.key(Scope.ADMIN)
        elsewhere = Database.open(postgres_url)
        slow = Slow()
        first = asyncio.ensure_future(write_once(elsewhere, slow.unit, **named("default", "k")))
        await slow.begun()
        try:
            refused = await post(api, admin, "", {"items": [ITEM]}, "k")
            other = await post(api, admin, "", {"items": [ITEM | {"text": "likes coffee"}]}, "other")
        finally:
            slow.go_on.set()
        assert await first == "made"
        await elsewhere.close()
        listed = await api.call("GET", "/memories?namespace=users", admin)

    assert (refused.status_code, refused.json()["code"]) == (409, "idempotency_key_in_progress")
    assert "retry-after" in refused.headers
    assert other.status_code == 200
    assert [each["text"] for each in listed.json()["items"]] == ["likes coffee"]


async def test_an_answer_goes_with_the_words_that_it_repeats(tmp_path: Path) -> None:
    """Nothing of an approved memory that was erased is left in any file; what is over its time is swept."""
    async with open_api(tmp_path) as api:
        admin = await api.key(Scope.ADMIN)
        untrusted = ITEM | {"namespace": ["shared"], "trust": "web", "text": "word-xylophone"}
        untrusted |= {"subject": "s", "attribute": "note", "value": "word-xylophone", "cardinality": "many"}
        (apart,) = (await post(api, admin, "", {"items": [untrusted]}, "added")).json()["items"]
        approved = await post(api, admin, f"/{apart['memory_id']}/approve", None, "approved")
        assert approved.json()["text"] == "word-xylophone"
        await post(api, admin, "/erase", {"subject": "s"}, "erased")
        memory = api.resources.wired.recollection
        count = partial(_count, table=receipt)
        assert await memory._database.read(count) == 2
        assert files_with(tmp_path, "word-xylophone") == []

        await memory.sweep(now=api.hands.now() + timedelta(days=1), recalls_before=api.hands.now())

        assert await memory._database.read(count) == 0


async def test_an_erasure_of_everything_takes_the_words_in_answers(tmp_path: Path) -> None:
    """The erasure of a tenant, too."""
    async with open_api(tmp_path) as api:
        admin = await api.key(Scope.ADMIN)
        untrusted = ITEM | {"namespace": ["shared"], "trust": "web", "text": "word-xylophone"}
        (apart,) = (await post(api, admin, "", {"items": [untrusted]})).json()["items"]
        await post(api, admin, f"/{apart['memory_id']}/approve", None, "approved")
        await api.resources.wired.recollection.erase(Forget(tenant=True), tenant_id="default", now=NOW)

        assert files_with(tmp_path, "word-xylophone") == []


def _count(connection: Connection, table: Any) -> int:
    return int(connection.scalar(select(func.count()).select_from(table)) or 0)
