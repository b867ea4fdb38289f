"""/admin/keys: making, listing, replacing and revoking, and who may do it to whom."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.support.api import Api
from threadmark.app.access import Scope, Token
from threadmark.app.access.issue import OVERLAP_S

KEYS = "/admin/keys"


async def make(api: Api, key: str, status: int = 201, **spec: Any) -> dict[str, Any]:
    """The answer to a wish, which has this status."""
    response = await api.call("POST", KEYS, key, json={"label": "made", "scopes": ["read"], **spec})
    assert response.status_code == status, response.text
    return dict(response.json())


async def listed(api: Api, key: str, **query: Any) -> list[dict[str, Any]]:
    """The first page of keys."""
    response = await api.call("GET", KEYS, key, params=query)
    assert response.status_code == 200, response.text
    return list(response.json()["items"])


def id_of(key: str) -> str:
    """The id inside a token."""
    token = Token.parse(key)
    assert token is not None
    return token.key_id


async def test_a_key_is_shown_once(api: Api, admin: str) -> None:
    """The answer that makes a key has its token; no listing ever has it again."""
    made = await make(api, admin, label="a bot", scopes=["run", "read"])

    assert (await api.call("GET", "/info", made["key"])).status_code == 200
    (found,) = [each for each in await listed(api, admin) if each["key_id"] == made["key_id"]]
    assert {**found, "key": made["key"]} == {**made, "last_used_at": found["last_used_at"]}
    assert (found["label"], found["scopes"], found["tenant_id"]) == ("a bot", ["read", "run"], "default")


async def test_tokens_are_random_and_differ(api: Api, admin: str) -> None:
    """256 bits of secret, and an id of its own, each time."""
    tokens = [Token.parse((await make(api, admin))["key"]) for _ in range(20)]

    assert len({each.secret for each in tokens if each}) == 20
    assert len({each.key_id for each in tokens if each}) == 20
    assert {64} == {len(each.secret) for each in tokens if each}


async def test_a_revoked_key_is_refused_at_once_and_stays_listed(api: Api, admin: str) -> None:
    """The process that revoked it does not wait until it reads again; the row stays, for the log lines that name it."""
    made = await make(api, admin)
    assert (await api.call("GET", "/info", made["key"])).status_code == 200

    assert (await api.call("DELETE", f"{KEYS}/{made['key_id']}", admin)).status_code == 204

    assert (await api.call("GET", "/info", made["key"])).status_code == 401
    (found,) = [each for each in await listed(api, admin) if each["key_id"] == made["key_id"]]
    assert found["revoked_at"] is not None
    assert (await api.call("DELETE", f"{KEYS}/{made['key_id']}", admin)).status_code == 204


async def test_a_replaced_key_goes_on_for_the_overlap(api: Api, admin: str) -> None:
    """Rotation without a gap: the new key takes over tenant, label and scopes, the old one ends later."""
    old = await make(api, admin, label="bot", scopes=["run"])

    new = (await api.call("POST", KEYS, admin, json={"replaces": old["key_id"], "overlap_s": 60})).json()

    assert (new["label"], new["scopes"], new["tenant_id"]) == ("bot", ["run"], "default")
    assert [(await api.call("GET", "/nowhere", each["key"])).status_code for each in (old, new)] != [401, 401]
    api.hands.pass_s(59)
    assert (await api.call("OPTIONS", "/info", old["key"])).status_code == 204
    api.hands.pass_s(1)
    assert (await api.call("OPTIONS", "/info", old["key"])).status_code == 401
    assert (await api.call("OPTIONS", "/info", new["key"])).status_code == 204


async def test_a_replacement_does_not_lengthen_a_life(api: Api, admin: str) -> None:
    """A key that ends in an hour still ends then, though the overlap is a day."""
    soon = api.hands.now() + timedelta(hours=1)
    old = await make(api, admin, expires_at=soon.isoformat())

    await make(api, admin, replaces=old["key_id"])

    (found,) = [each for each in await listed(api, admin) if each["key_id"] == old["key_id"]]
    assert found["expires_at"] == old["expires_at"]
    assert timedelta(hours=1) < timedelta(seconds=OVERLAP_S)


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"label": ""}, "$.label"),
        ({"label": "x" * 201}, "$.label"),
        ({"label": 7}, "$.label"),
        ({"scopes": []}, "$.scopes"),
        ({"scopes": ["owner"]}, "$.scopes[0]"),
        ({"scopes": "read"}, "$.scopes"),
        ({"tenant_id": "a b"}, "$.tenant_id"),
        ({"tenant_id": "a\n"}, "$.tenant_id"),
        ({"tenant_id": "../a"}, "$.tenant_id"),
        ({"expires_at": "2026-11-29T12:00:00"}, "$.expires_at"),
        ({"expires_at": "2026-11-29T11:59:59Z"}, "$.expires_at"),
        ({"expires_at": "infinity"}, "$.expires_at"),
        ({"overlap_s": -1}, "$.overlap_s"),
        ({"overlap_s": "60"}, "$.overlap_s"),
        ({"overlap_s": 1.5}, "$.overlap_s"),
        ({"label": None}, "$.label"),
        ({"scopes": None}, "$.scopes"),
        ({"key_id": "mine"}, "$"),
        ({"owner": "me"}, "$"),
    ],
)
async def test_a_wish_that_cannot_be_granted_is_refused_with_its_place(
    api: Api, operator: str, spec: dict[str, Any], path: str
) -> None:
    """422 names the place, and no key was made."""
    refused = await make(api, operator, 422, **spec)

    assert refused["path"] == path
    assert refused["detail"].startswith(f"{path}: ")
    assert len(await listed(api, operator)) == 1


async def test_an_admin_stays_in_its_tenant(api: Api, admin: str) -> None:
    """Neither making, nor listing, nor replacing, nor revoking reaches another tenant."""
    theirs = id_of(await api.key(Scope.READ, tenant_id="other"))

    assert (await make(api, admin, 403, tenant_id="other"))["code"] == "forbidden"
    assert (await api.call("GET", KEYS, admin, params={"tenant_id": "other"})).status_code == 403
    assert (await make(api, admin, 404, replaces=theirs))["code"] == "not_found"
    assert (await api.call("DELETE", f"{KEYS}/{theirs}", admin)).status_code == 404
    assert theirs not in [each["key_id"] for each in await listed(api, admin)]


async def test_a_foreign_key_looks_like_one_that_never_was(api: Api, admin: str) -> None:
    """The same status and the same words, apart from the id that was asked for."""
    theirs, nobodys = id_of(await api.key(Scope.READ, tenant_id="other")), Token.fresh().key_id

    answers = [await api.call("DELETE", f"{KEYS}/{each}", admin) for each in (theirs, nobodys)]

    bodies = [
        {**each.json(), "request_id": "", "detail": each.json()["detail"].replace(asked, "ID")}
        for each, asked in zip(answers, (theirs, nobodys), strict=True)
    ]
    assert bodies[0] == bodies[1]
    assert {404} == {each.status_code for each in answers}


async def test_an_operator_reaches_every_tenant(api: Api, operator: str) -> None:
    """The first key makes the first key of another tenant; otherwise no tenant could ever be reached."""
    made = await make(api, operator, tenant_id="acme", scopes=["admin"])

    assert made["tenant_id"] == "acme"
    assert [made["key_id"]] == [each["key_id"] for each in await listed(api, operator, tenant_id="acme")]
    assert [made["key_id"]] == [each["key_id"] for each in await listed(api, made["key"])]
    assert (await api.call("DELETE", f"{KEYS}/{made['key_id']}", operator)).status_code == 204


async def test_an_admin_cannot_become_an_operator(api: Api, admin: str, operator: str) -> None:
    """Neither by asking for the scope, nor by taking the place of an operator's key; nor can it revoke that key."""
    assert (await make(api, admin, 403, scopes=["operator"]))["code"] == "forbidden"
    assert (await make(api, admin, 403, replaces=id_of(operator)))["code"] == "forbidden"
    assert (await api.call("DELETE", f"{KEYS}/{id_of(operator)}", admin)).status_code == 403
    assert (await api.call("GET", "/info", operator)).status_code == 200


async def test_a_key_is_not_replaced_across_tenants_nor_from_the_dead(api: Api, operator: str) -> None:
    """A replacement belongs to the same tenant, and a revoked key has no successor."""
    made = await make(api, operator, tenant_id="acme")

    assert (await make(api, operator, 422, replaces=made["key_id"], tenant_id="other"))["path"] == "$.tenant_id"
    await api.call("DELETE", f"{KEYS}/{made['key_id']}", operator)
    assert (await make(api, operator, 422, replaces=made["key_id"]))["path"] == "$.replaces"


async def test_the_same_request_key_makes_one_key(api: Api, admin: str) -> None:
    """A repeated POST is answered from the receipt, in any order of its members; the token is not in the replay."""
    headers = {"idempotency-key": "k1"}
    first = await api.call("POST", KEYS, admin, headers=headers, content=b'{"label": "a", "scopes": ["read"]}')
    again = await api.call("POST", KEYS, admin, headers=headers, content=b'{"scopes":["read"],"label":"a"}')

    assert (first.status_code, again.status_code) == (201, 201)
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    token = first.json().pop("key")
    assert token
    assert again.json() == {name: value for name, value in first.json().items() if name != "key"}
    assert [each["label"] for each in await listed(api, admin) if each["label"] == "a"] == ["a"]


async def test_a_request_key_is_for_one_request_of_one_tenant(api: Api, admin: str, operator: str) -> None:
    """Another body with the key is refused and makes nothing; another tenant's key of the same name is another key."""
    theirs = (await make(api, operator, tenant_id="acme", scopes=["admin"]))["key"]
    headers = {"idempotency-key": "k1"}
    body = {"label": "a", "scopes": ["read"]}
    await api.call("POST", KEYS, admin, headers=headers, json=body)

    other = await api.call("POST", KEYS, admin, headers=headers, json={**body, "label": "b"})
    foreign = await api.call("POST", KEYS, theirs, headers=headers, json=body)

    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert (foreign.status_code, foreign.json()["tenant_id"]) == (201, "acme")
    assert "b" not in [each["label"] for each in await listed(api, admin)]


@pytest.mark.parametrize("key", ["", "k" * 256, "a b"])
async def test_a_bad_request_key_is_refused(api: Api, admin: str, key: str) -> None:
    """400, and nothing is made."""
    before = len(await listed(api, admin))

    response = await api.call(
        "POST", KEYS, admin, headers={"idempotency-key": key}, json={"label": "a", "scopes": ["read"]}
    )

    assert (response.status_code, response.json()["code"]) == (400, "bad_idempotency_key")
    assert len(await listed(api, admin)) == before


async def test_twenty_equal_requests_at_once_make_one_key(api: Api, admin: str) -> None:
    """One wins and shows the token; the others get its stored answer."""
    headers = {"idempotency-key": "k1"}
    body = {"label": "raced", "scopes": ["read"]}

    answers = await asyncio.gather(*(api.call("POST", KEYS, admin, headers=headers, json=body) for _ in range(20)))

    assert {201} == {each.status_code for each in answers}
    assert sum("key" in each.json() for each in answers) == 1
    assert len({each.json()["key_id"] for each in answers}) == 1
