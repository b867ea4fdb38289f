"""Authentication: who is admitted, who is refused, and that a refusal reveals nothing to a stranger."""

import asyncio
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.api import Api, open_api
from tests.support.waiting import wait_until
from threadmark.app.access import Scope, Token
from threadmark.app.access.gate import FAILURES_PER_KEY, FAILURES_PER_SOURCE
from threadmark.app.access.key_store import TOUCH_S, StoredKey, find_key, revoke_key
from threadmark.app.access.ring import RECHECK_S
from threadmark.state import Database

WRONG = [
    "",
    "x",
    "tm_",
    pytest.param(Token.fresh().text, id="fresh"),
    "tm_0123456789abcdef_" + "0" * 63,
    "TM_0123456789ABCDEF_" + "0" * 64,
    "\u00e9".encode().decode("latin-1"),
    "k" * 4_000,
]


def said(response: Any) -> tuple[int, dict[str, Any]]:
    """Status and body, without what differs in every answer."""
    body = response.json()
    del body["request_id"]
    return response.status_code, body


async def stored(api: Api, key: str) -> StoredKey:
    """The key as the database has it."""
    token = Token.parse(key)
    assert token is not None
    found = await api.resources.database.read(partial(find_key, key_id=token.key_id))
    assert found is not None
    return found


async def test_one_route_is_public_and_no_other(api: Api) -> None:
    """A balancer asks /ok without a key; everything else wants one."""
    assert (await api.call("GET", "/ok")).status_code == 200
    assert (await api.call("GET", "/info")).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        lambda key: {"x-api-key": key},
        lambda key: {"X-API-KEY": key},
        lambda key: {"authorization": f"Bearer {key}"},
        lambda key: {"Authorization": f"bearer  {key} "},
        lambda key: {"x-api-key": key, "authorization": f"Bearer {key}"},
    ],
)
async def test_a_key_is_taken_from_either_header(api: Api, headers: Any) -> None:
    """The SDK sends X-Api-Key, OpenAI's clients send a bearer; both together are fine when they agree."""
    key = await api.key(Scope.READ)

    assert (await api.call("GET", "/info", headers=headers(key))).status_code == 200


async def test_two_different_keys_are_none(api: Api) -> None:
    """Nobody can say which of two keys counts, so neither does."""
    one, other = await api.key(Scope.READ), await api.key(Scope.READ)

    assert (await api.call("GET", "/info", one, headers={"authorization": f"Bearer {other}"})).status_code == 401
    assert (await api.call("GET", "/info", one, headers={"authorization": "Basic eDp5"})).status_code == 401


@pytest.mark.parametrize("wrong", WRONG)
async def test_a_wrong_key_is_answered_as_a_missing_one(api: Api, wrong: str) -> None:
    """The same status and the same words, whatever is wrong with the key."""
    missing = said(await api.call("GET", "/info"))

    assert said(await api.call("GET", "/info", headers=[("x-api-key", wrong.encode("latin-1"))])) == missing
    assert missing[0] == 401


async def test_a_right_id_with_a_wrong_secret_is_answered_as_a_missing_key(api: Api) -> None:
    """A key id is no secret, and knowing one gives no access."""
    token = Token.parse(await api.key(Scope.READ))
    assert token is not None

    answer = await api.call("GET", "/info", Token(token.key_id, "0" * 64).text)

    assert said(answer) == said(await api.call("GET", "/info"))
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_key_in_the_address_opens_nothing(api: Api) -> None:
    """Addresses end up in logs and histories: a key in one is not looked at."""
    key = await api.key(Scope.READ)

    for name in ("api_key", "x-api-key", "key", "token", "access_token"):
        assert (await api.call("GET", f"/info?{name}={key}")).status_code == 401


async def test_an_expired_key_opens_nothing(api: Api) -> None:
    """The instant of expiry is the first at which the key is of no use, even while it is known here."""
    key = await api.key(Scope.READ, expires_at=api.hands.now() + timedelta(seconds=1))

    assert (await api.call("GET", "/info", key)).status_code == 200
    api.hands.pass_s(1)
    assert (await api.call("GET", "/info", key)).status_code == 401


async def test_a_key_revoked_by_another_process_is_refused_within_five_seconds(api: Api) -> None:
    """A process believes what it read for RECHECK_S seconds and then reads again."""
    key = await api.key(Scope.READ)
    assert (await api.call("GET", "/info", key)).status_code == 200

    unit = partial(revoke_key, key_id=key.split("_")[1], now=api.hands.now())
    await api.resources.database.write(unit)
    api.hands.pass_s(RECHECK_S)

    assert RECHECK_S <= 5
    assert (await api.call("GET", "/info", key)).status_code == 401


async def test_a_known_key_is_not_read_again_for_every_request(api: Api) -> None:
    """A hundred requests in one moment read the database once."""
    key = await api.key(Scope.READ)
    before = api.resources.database.read_count

    for _ in range(100):
        assert (await api.call("GET", "/info", key)).status_code == 200

    assert api.resources.database.read_count - before == 1


async def test_the_last_use_is_noted_once_a_minute(api: Api) -> None:
    """A key that is used all the time costs one commit a minute, not one a request."""
    key = await api.key(Scope.READ)
    database = api.resources.database
    before = database.commit_count

    for _ in range(20):
        await api.call("GET", "/info", key)

    async def used_at() -> Any:
        return (await stored(api, key)).key.last_used_at

    assert await wait_until(used_at, description="the note of use") == api.hands.now()
    assert database.commit_count - before == 1
    api.hands.pass_s(TOUCH_S - 1)
    await api.call("GET", "/info", key)
    api.hands.pass_s(1)
    await api.call("GET", "/info", key)

    async def used_again() -> bool:
        return bool(await used_at() == api.hands.now())

    assert await wait_until(used_again, description="the second note of use")
    assert database.commit_count - before == 2


async def test_a_request_does_not_fail_because_its_note_of_use_does(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """When the disk is full, what only reads still works; the log says that the note is missing."""

    async def fail(_self: Database, _unit: Any) -> None:
        raise OSError("no space left")

    key = await api.key(Scope.READ)
    monkeypatch.setattr(Database, "write", fail)

    assert (await api.call("GET", "/info", key)).status_code == 200
    await wait_until(lambda: "the last use of a key was not noted" in caplog.text, description="the warning")


async def test_guessing_from_one_source_is_slowed_down(api: Api) -> None:
    """After its share of wrong keys a source gets 429, and its guesses do not reach the database any more."""
    for _ in range(FAILURES_PER_SOURCE):
        assert (await api.call("GET", "/info", Token.fresh().text)).status_code == 401
    before = api.resources.database.read_count

    refused = [await api.call("GET", "/info", Token.fresh().text) for _ in range(20)]

    assert {429} == {each.status_code for each in refused}
    assert {"too_many_requests"} == {each.json()["code"] for each in refused}
    assert all(int(each.headers["retry-after"]) >= 1 for each in refused)
    assert api.resources.database.read_count == before
    api.hands.pass_s(1.5)
    assert (await api.call("GET", "/info", Token.fresh().text)).status_code == 401


async def test_guessing_at_one_key_is_slowed_down(api: Api) -> None:
    """After its share of wrong secrets a key id gets 429, and its holder gets in all the same."""
    key = await api.key(Scope.READ)
    token = Token.parse(key)
    assert token is not None
    guess = Token(token.key_id, "0" * 64).text

    statuses = [(await api.call("GET", "/info", guess)).status_code for _ in range(FAILURES_PER_KEY + 5)]

    assert statuses == [401] * FAILURES_PER_KEY + [429] * 5
    assert (await api.call("GET", "/info", key)).status_code == 200


async def test_a_holder_is_not_locked_out_by_neighbours_behind_the_same_address(api: Api) -> None:
    """A broken client behind the same proxy spends the source's share; a key that is in use goes on working."""
    key = await api.key(Scope.READ)
    await api.call("GET", "/info", key)
    for _ in range(FAILURES_PER_SOURCE + 1):
        await api.call("GET", "/info", Token.fresh().text)

    assert (await api.call("GET", "/info", Token.fresh().text)).status_code == 429
    assert (await api.call("GET", "/info", key)).status_code == 200


async def test_no_more_requests_pass_at_once_than_the_limit_allows(tmp_path: Path) -> None:
    """Fifty calls at the same moment take their tokens one by one: the limit, and not one more."""
    async with open_api(tmp_path, environment={"THREADMARK_RATE_BURST": "10"}) as api:
        key = await api.key(Scope.READ)

        answers = await asyncio.gather(*(api.call("GET", "/info", key) for _ in range(50)))

    statuses = [each.status_code for each in answers]
    assert (statuses.count(200), statuses.count(429)) == (10, 40)
    assert {"1"} == {each.headers["retry-after"] for each in answers if each.status_code == 429}


async def test_each_key_has_a_rate_of_its_own(tmp_path: Path) -> None:
    """One tenant's busy key slows nobody else down, and rests like everybody."""
    environment = {"THREADMARK_RATE_BURST": "1", "THREADMARK_RATE_PER_S": "2"}
    async with open_api(tmp_path, environment=environment) as api:
        busy, other = await api.key(Scope.READ), await api.key(Scope.READ, tenant_id="other")
        await api.call("GET", "/info", busy)

        assert (await api.call("GET", "/info", busy)).status_code == 429
        assert (await api.call("GET", "/info", other)).status_code == 200
        api.hands.pass_s(0.5)
        assert (await api.call("GET", "/info", busy)).status_code == 200


async def test_the_database_holds_no_usable_key(api: Api, operator: str) -> None:
    """The database holds digests only: neither the token nor its secret is anywhere in its files."""
    made = await api.call(
        "POST",
        "/admin/keys",
        operator,
        json={"label": "copied", "scopes": ["read"]},
        headers={"idempotency-key": "k1"},
    )
    assert made.status_code == 201
    secrets = [key.split("_")[2].encode() for key in (operator, made.json()["key"])]

    files = [each for each in api.resources.settings.data_dir.rglob("*") if each.is_file()]

    assert any(b"copied" in each.read_bytes() for each in files)
    assert not [each for each in files for secret in secrets if secret in each.read_bytes()]
