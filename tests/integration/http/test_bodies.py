"""Bodies: strict JSON of a bounded size, whatever it calls itself, and never a field that nobody honours."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from litestar import post
from litestar.params import JSONBody

from tests.support.api import Api, open_api
from threadmark.app.access import Scope, needs

LIMIT = 4_096


class Note(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What the test's own route takes."""

    text: str
    count: int = 1
    flag: bool = False
    tags: list[str] = []
    inner: dict[str, Any] = {}


@post("/echo", opt=needs(Scope.RUN), sync_to_thread=False)
def echo(data: JSONBody[Note]) -> Note:
    """Give back what came."""
    return data


@post("/touch", opt=needs(Scope.RUN), status_code=204, sync_to_thread=False)
def touch() -> None:
    """Take no body."""


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    """The API with two routes of the test's own, and a small limit."""
    environment = {"THREADMARK_BODY_BYTES_MAX": str(LIMIT)}
    async with open_api(tmp_path, routes=[echo, touch], environment=environment) as api:
        yield api


@pytest.fixture
async def key(api: Api) -> str:
    """A key that may call both."""
    return await api.key(Scope.RUN)


async def send(api: Api, key: str, content: Any, content_type: str | None = "application/json", **headers: str) -> Any:
    """The response to these bytes."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if content_type is not None:
        sent["content-type"] = content_type
    return await api.call("POST", "/echo", key, content=content, headers=sent)


@pytest.mark.parametrize(
    ("body", "status", "code", "path"),
    [
        (b'{"text": NaN}', 400, "non_finite_number", "$.text"),
        (b'{"text": "a", "inner": {"x": [-Infinity]}}', 400, "non_finite_number", "$.inner.x[0]"),
        (b'{"text": "a", "text": "b"}', 400, "duplicate_key", "$.text"),
        (b'{"text": "\xff"}', 400, "invalid_json", "$"),
        (b'\xef\xbb\xbf{"text": "a"}', 400, "invalid_json", "$"),
        (b'{"text": ', 400, "invalid_json", "$"),
        (b"   ", 400, "invalid_json", "$"),
        (b'{"text": "\\ud800"}', 422, "lone_surrogate", "$.text"),
        (b'{"text": "a", "count": 1' + b"0" * 30 + b"}", 422, "number_out_of_range", "$.count"),
        (b'{"text": "a", "inner": {"x": [9007199254740992]}}', 422, "number_out_of_range", "$.inner.x[0]"),
        (b'{"text": "a", "count": -9007199254740992}', 422, "number_out_of_range", "$.count"),
        (b'{"text": "a", "inner": ' + b'{"a":' * 64 + b"1" + b"}" * 64 + b"}", 422, "too_deep", "$.inner" + ".a" * 63),
        (b'{"text": 5}', 422, "invalid_body", "$.text"),
        (b'{"text": null}', 422, "invalid_body", "$.text"),
        (b'{"text": "a", "count": "5"}', 422, "invalid_body", "$.count"),
        (b'{"text": "a", "count": true}', 422, "invalid_body", "$.count"),
        (b'{"text": "a", "flag": "true"}', 422, "invalid_body", "$.flag"),
        (b'{"text": "a", "tags": ["x", 1]}', 422, "invalid_body", "$.tags[1]"),
        (b'{"text": "a", "tenant_id": "other"}', 422, "invalid_body", "$"),
        (b"{}", 422, "invalid_body", "$"),
        (b"[]", 422, "invalid_body", "$"),
        (b"null", 422, "invalid_body", "$"),
        (b"", 422, "invalid_body", "$"),
    ],
)
async def test_what_is_not_taken_is_named_with_its_place(
    api: Api, key: str, body: bytes, status: int, code: str, path: str
) -> None:
    """400 for what is not JSON as the API means it, 422 for JSON that is not what the route takes."""
    response = await send(api, key, body)

    assert (response.status_code, response.json()["code"], response.json()["path"]) == (status, code, path)
    assert response.json()["detail"].startswith(f"{path}: ")


async def test_an_unknown_member_is_named(api: Api, key: str) -> None:
    """What is not supported is refused by name and never ignored: the sender would believe that it counted."""
    response = await send(api, key, b'{"text": "a", "fence": 7}')

    assert "`fence`" in response.json()["detail"]


@pytest.mark.parametrize("text", ["a\x00b", "\x1b[31m", "\u2028\u202e", "\U0001f600", "e\u0301", "", "\ufeff"])
async def test_text_keeps_its_exact_code_points(api: Api, key: str, text: str) -> None:
    """NUL and all."""
    for ascii_only in (True, False):
        body = json.dumps({"text": text}, ensure_ascii=ascii_only).encode()

        assert (await send(api, key, body)).json()["text"] == text


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        "APPLICATION/JSON",
        "application/problem+json",
        "text/plain",
        "text/plain;charset=UTF-8",
        None,
    ],
)
async def test_json_is_json_by_any_of_its_names(api: Api, key: str, content_type: str | None) -> None:
    """text/plain too: browsers send it without a preflight, and clients of the dialect rely on it."""
    assert (await send(api, key, b'{"text": "a"}', content_type)).status_code == 201


@pytest.mark.parametrize(
    "content_type", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/html", "x"]
)
async def test_what_says_that_it_is_something_else_is_not_read(api: Api, key: str, content_type: str) -> None:
    """A form is not parsed as JSON, even when it looks like it."""
    response = await send(api, key, b'{"text": "a"}', content_type)

    assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "gzip, identity", "x"])
async def test_a_compressed_body_is_not_unpacked(api: Api, key: str, encoding: str) -> None:
    """A bomb of a few kilobytes would pass every limit on the bytes that are read."""
    response = await send(api, key, b'{"text": "a"}', content_encoding=encoding)

    assert (response.status_code, response.json()["code"]) == (415, "compressed_body")
    assert (await send(api, key, b'{"text": "a"}', content_encoding="identity")).status_code == 201


def padded(size: int) -> bytes:
    """A body of exactly this many bytes."""
    return b'{"text": "' + b"x" * (size - 12) + b'"}'


async def test_the_limit_is_the_last_size_that_is_taken(api: Api, key: str) -> None:
    """The limit itself is read, one byte more is not."""
    assert (await send(api, key, padded(LIMIT))).status_code == 201

    response = await send(api, key, padded(LIMIT + 1))
    assert (response.status_code, response.json()["code"]) == (413, "body_too_large")


async def test_nothing_of_a_body_is_read_before_the_gate(api: Api) -> None:
    """A stranger's body is refused for its sender, whatever it holds."""
    reader = await api.key(Scope.READ)

    assert (await api.call("POST", "/echo", content=padded(10 * LIMIT))).status_code == 401
    assert (await api.call("POST", "/echo", content=b"{")).status_code == 401
    assert (await api.call("POST", "/echo", reader, content=b"{")).status_code == 403


async def test_a_route_without_a_body_asks_for_none(api: Api, key: str) -> None:
    """An empty POST is a whole request."""
    assert (await api.call("POST", "/touch", key)).status_code == 204
