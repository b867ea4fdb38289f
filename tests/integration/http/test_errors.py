"""Errors: one shape for everything, a request id that leads to the log, and nothing that is nobody's business."""

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from litestar import get
from litestar.params import FromPath, FromQuery
from litestar.response import Stream

from tests.support.api import Api, open_api
from threadmark.app.access import Scope, needs
from threadmark.app.requests.errors import REFUSALS, refusal_of

SECRET = "the-password-of-the-database"


@get("/boom", opt=needs(Scope.READ), sync_to_thread=False)
def boom() -> NoReturn:
    """Fail as only a defect can."""
    raise RuntimeError(f"SELECT * FROM thread -- {SECRET}")


@get("/half", opt=needs(Scope.READ), sync_to_thread=False)
def half() -> Stream:
    """Fail when half of the answer is sent."""

    async def chunks() -> AsyncIterator[bytes]:
        yield b"begun"
        raise RuntimeError(SECRET)

    return Stream(chunks())


@get("/number/{number:int}", opt=needs(Scope.READ), sync_to_thread=False)
def number(number: FromPath[int], limit: FromQuery[int]) -> int:
    """Take two numbers."""
    return number + limit


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    """The API with routes that fail."""
    async with open_api(tmp_path, routes=[boom, half, number]) as api:
        yield api


@pytest.fixture
async def key(api: Api) -> str:
    """A key that may call them."""
    return await api.key(Scope.READ)


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/number/abc?limit=1", 404, "not_found"),
        ("GET", "/admin/keys/", 403, "forbidden"),
        ("PUT", "/info", 405, "method_not_allowed"),
        ("FOO", "/info", 405, "method_not_allowed"),
        ("TRACE", "/info", 405, "method_not_allowed"),
        ("GET", "/number/1", 422, "invalid_parameter"),
        ("GET", "/number/1?limit=x", 422, "invalid_parameter"),
        ("GET", "/info?debug=1", 422, "unknown_parameter"),
        ("GET", "/admin/keys", 403, "forbidden"),
        ("GET", "/boom", 500, "internal_error"),
        ("GET", "/inf%00o", 422, "bad_path"),
    ],
)
async def test_every_error_has_the_same_shape(
    api: Api, key: str, method: str, path: str, status: int, code: str
) -> None:
    """`detail` for people, `code` for programs, and the id that is also in the header."""
    response = await api.call(method, path, key)

    body = response.json()
    assert (response.status_code, body["code"]) == (status, code)
    assert isinstance(body["detail"], str)
    assert body["request_id"] == response.headers["x-request-id"]
    assert response.headers["content-type"] == "application/json"


async def test_a_parameter_is_named(api: Api, key: str) -> None:
    """Missing, wrong or unknown: the path is the parameter's name."""
    for query in ("", "?limit=x", "?limit=1&limt=2"):
        response = await api.call("GET", f"/number/1{query}", key)

        assert response.json()["path"] == ("limt" if "limt" in query else "limit")
        assert response.json()["detail"].startswith(response.json()["path"])


async def test_a_wrong_method_is_refused_with_the_right_ones(api: Api, key: str) -> None:
    """405 comes with `Allow`."""
    assert (await api.call("DELETE", "/info", key)).headers["allow"] == "GET, OPTIONS"


async def test_a_failure_is_logged_in_full_and_hidden_from_the_client(
    api: Api, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    """No SQL, no path, no class, no message; the request id leads to the traceback."""
    response = await api.call("GET", "/boom", key)

    assert response.json() == {
        "detail": "the server failed to answer; the request id leads to the reason in its log",
        "code": "internal_error",
        "request_id": response.headers["x-request-id"],
    }
    (record,) = [each for each in caplog.records if each.getMessage() == "a request failed"]
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], RuntimeError)
    assert vars(record)["request_id"] == response.headers["x-request-id"]
    assert vars(record)["tenant_id"] == "default"


async def test_an_answer_that_breaks_off_is_logged_as_such(
    api: Api, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Status and headers are gone by then; the log line says that the answer is not whole."""
    caplog.set_level(logging.INFO, "threadmark.http")

    await api.call("GET", "/half", key)

    (line,) = [vars(each) for each in caplog.records if each.getMessage() == "request"]
    assert (line["route"], line["status"], line["is_broken_off"]) == ("/half", 200, True)


async def test_every_answer_has_its_own_id(api: Api, key: str) -> None:
    """Good ones too, and no two are alike."""
    ids = [(await api.call("GET", "/info", key)).headers["x-request-id"] for _ in range(10)]

    assert len(set(ids)) == 10


@pytest.mark.parametrize("kind", REFUSALS, ids=lambda kind: kind.__name__)
def test_every_refusal_has_a_code_of_its_own_words(kind: type[Exception]) -> None:
    """4xx, or 503 with a time to come back; a lower-case code; found by every subclass."""
    refusal = REFUSALS[kind]

    assert 400 <= refusal.status < 500 or (refusal.status == 503 and refusal.retry_after_s)
    assert refusal.code == refusal.code.lower().replace(" ", "_")
    assert refusal_of(type("Narrower", (kind,), {"__init__": lambda self: None})()) == refusal


def test_the_nearest_base_decides() -> None:
    """A refusal of a family may be answered differently from its family."""

    class Narrow(KeyError):
        pass

    assert refusal_of(Narrow()) is None


async def test_the_detail_of_an_error_repeats_no_header(api: Api) -> None:
    """What a client puts into its headers comes back in no body."""
    response = await api.call(
        "GET", "/info", headers={"x-api-key": SECRET, "cookie": SECRET, "x-forwarded-for": SECRET}
    )

    assert SECRET not in response.text


def leaks(response: Any) -> bool:
    """Whether an answer shows something of the inside."""
    return any(word in response.text for word in (SECRET, "Traceback", "SELECT", ".py", "litestar", "RuntimeError"))


async def test_no_answer_shows_the_inside(api: Api, key: str) -> None:
    """Neither refusals nor failures name files, classes or statements."""
    for path in ("/boom", "/nowhere", "/number/x", "/number/1?limit=x", "/info?x=1", "/admin/keys"):
        assert not leaks(await api.call("GET", path, key))
