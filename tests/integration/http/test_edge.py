"""The edge: what holds for every request and every answer, whatever the route."""

import asyncio
import random
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.support.api import Api, open_api
from threadmark.app.access import Scope
from threadmark.app.edge.shield import SECURITY_HEADERS

ORIGIN = "https://chat.example.com"


def opened(path: Path, **environment: str) -> AbstractAsyncContextManager[Api]:
    """The API with these settings, without their prefix."""
    return open_api(path, environment={f"THREADMARK_{name}": value for name, value in environment.items()})


@pytest.mark.parametrize("path", ["/ok", "/info", "/nowhere", "/openapi.json"])
async def test_every_answer_is_guarded(api: Api, path: str) -> None:
    """Data is never a page, a frame or a script, and never kept by a cache, be it an answer or a refusal."""
    headers = (await api.call("GET", path)).headers

    assert {name: headers[name] for name, _ in SECURITY_HEADERS} == dict(SECURITY_HEADERS)
    assert "server" not in headers


@pytest.mark.parametrize("method", ["TRACE", "TRACK", "CONNECT"])
async def test_tracing_is_switched_off(api: Api, admin: str, method: str) -> None:
    """Nothing sends a request's headers back; the refusal lists the methods that exist."""
    response = await api.call(method, "/ok", admin)

    assert response.status_code == 405
    assert response.headers["allow"] == "GET, OPTIONS"
    assert admin not in response.text


@pytest.mark.parametrize(
    "host",
    [
        "",
        "a b",
        "a/b",
        "a@b",
        "a:b",
        "a:123456",
        "[::1",
        "[zz]",
        "é".encode().decode("latin-1"),
        "-a",
        "a" * 300,
        "a\tb",
    ],
)
async def test_an_odd_host_is_refused(api: Api, host: str) -> None:
    """What is no host name names no host of ours."""
    response = await api.call("GET", "/ok", headers=[(b"host", host.encode("latin-1"))])

    assert (response.status_code, response.json()["code"]) == (400, "bad_host")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8123", "[::1]:8123", "agents.example.com", "A.b-c.d_e:80"])
async def test_any_well_formed_host_is_taken_by_default(api: Api, host: str) -> None:
    """A server behind a proxy does not know all of its names."""
    assert (await api.call("GET", "/ok", headers={"host": host})).status_code == 200


async def test_hosts_can_be_limited_to_a_list(tmp_path: Path) -> None:
    """With a list, another name is refused, in any spelling and with any port."""
    async with opened(tmp_path, ALLOWED_HOSTS="agents.example.com,::1") as api:
        statuses = {
            host: (await api.call("GET", "/ok", headers={"host": host})).status_code
            for host in ("Agents.Example.com:443", "[::1]", "[0:0:0:0:0:0:0:1]:80", "localhost", "x.agents.example.com")
        }

    assert list(statuses.values()) == [200, 200, 200, 400, 400]


async def test_other_origins_may_not_call_by_default(api: Api, admin: str) -> None:
    """No answer tells a browser that a foreign page may read it, and a preflight needs a key it cannot have."""
    headers = {"origin": ORIGIN, "access-control-request-method": "GET"}

    answers = [
        await api.call("GET", "/info", admin, headers={"origin": ORIGIN}),
        await api.call("OPTIONS", "/info", headers=headers),
    ]

    assert [each.status_code for each in answers] == [200, 401]
    assert not [name for each in answers for name in each.headers if name.startswith("access-control")]


async def test_an_allowed_origin_may_call(tmp_path: Path) -> None:
    """Its preflight is answered without a key, its answers are readable, and no other origin's are."""
    async with opened(tmp_path, ALLOWED_ORIGINS=ORIGIN) as api:
        key = await api.key(Scope.READ)
        asked = {"origin": ORIGIN, "access-control-request-method": "POST"}
        preflight = await api.call("OPTIONS", "/info", headers=asked)
        call = await api.call("GET", "/info", key, headers={"origin": ORIGIN})
        foreign = await api.call("GET", "/info", key, headers={"origin": f"{ORIGIN}.evil.example"})
        refused = await api.call("OPTIONS", "/info", headers={**asked, "origin": "null"})
        error = await api.call("GET", "/info", headers={"origin": ORIGIN})

    assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (204, ORIGIN)
    assert "x-api-key" in preflight.headers["access-control-allow-headers"]
    assert {ORIGIN} == {each.headers["access-control-allow-origin"] for each in (call, error)}
    assert "x-request-id" in call.headers["access-control-expose-headers"]
    assert {"Origin"} == {each.headers["vary"] for each in (preflight, call, foreign, refused)}
    for each in (foreign, refused):
        assert "access-control-allow-origin" not in each.headers
    for each in (preflight, call):
        assert "access-control-allow-credentials" not in each.headers


async def test_a_client_cannot_name_its_request(api: Api) -> None:
    """Two requests with one id could not be distinguished in the log."""
    said = "0123456789abcdef"

    assert (await api.call("GET", "/ok", headers={"x-request-id": said})).headers["x-request-id"] != said


async def test_a_path_is_not_a_place_for_control_characters(api: Api, admin: str) -> None:
    """They have no business in a name, and every log and terminal would have to defend itself."""
    for character in ("%00", "%0a", "%0d", "%1b", "%7f", "%C2%85"):
        response = await api.call("DELETE", f"/admin/keys/a{character}b", admin)

        assert (response.status_code, response.json()["code"]) == (422, "bad_path")


@pytest.mark.parametrize(
    "name", ["../escape", "..%2fescape", "a/../../b", "C:%5Cx", ".", "%2e%2e/x", "%25", "a%20b", "'"]
)
async def test_odd_names_in_paths_are_not_found(api: Api, admin: str, name: str) -> None:
    """They name nothing: 404 or another client error, and never a failure."""
    response = await api.call("DELETE", f"/admin/keys/{name}", admin)

    assert 400 <= response.status_code < 500


async def status_of(api: Api, method: str, target: str, headers: list[tuple[bytes, bytes]], body: bytes) -> int:
    """What the application answers to a request that no careful client would send."""
    path, _, query = target.partition("?")
    scope: Any = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"host", b"localhost"), *headers],
        "client": ("192.0.2.1", 1),
        "server": ("127.0.0.1", 8123),
    }
    statuses: list[int] = []
    pending: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        if not pending:
            # A client that waits for its answer sends nothing more.
            await asyncio.Event().wait()
        return pending.pop()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    await api.app(scope, receive, send)
    (status,) = statuses
    return status


async def test_whatever_is_asked_the_server_does_not_fail(api: Api, admin: str) -> None:
    """A thousand requests of random methods, paths, queries, headers and bodies: answered or refused, never a 5xx."""
    chance = random.Random(7)
    alphabet = [*"abz09/._-~%?&=#+:;,@!$'()*[]{}|^`<> \"\\", "%00", "%ff", "%2f", "%0a", "\u00e9", "\u2028", "\x7f"]
    known = ["/ok", "/info", "/admin/keys", "/admin/keys/0123456789abcdef", "/metrics", "/openapi.json", ""]
    names = [b"content-type", b"idempotency-key", b"origin", b"content-encoding", b"x-forwarded-for", b"content-length"]

    def text(most: int) -> str:
        return "".join(chance.choices(alphabet, k=chance.randrange(most)))

    for _ in range(1_000):
        method = chance.choice(["GET", "POST", "DELETE", "PUT", "OPTIONS", "HEAD", "BREW"])
        target = chance.choice(known) + chance.choice(["", "/", "?limit=1&", "?cursor=", "?"]) + text(20)
        headers = [(chance.choice(names), text(20).encode()) for _ in range(chance.randrange(3))]
        headers.append((b"x-api-key", admin.encode()))

        status = await status_of(api, method, target, headers, text(40).encode())

        assert status < 500, (method, target, headers)
