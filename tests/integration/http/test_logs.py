"""The log of the API: one line per request, by route and outcome, and nothing that anybody sent."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.api import Api
from threadmark.app.access import Scope
from threadmark.app.operations import logs

CANARY = "canary-7f3a"


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """The log of the process, as `threadmark serve` writes it."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    logs.configure("debug", stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)


def requests(written: io.StringIO) -> list[dict[str, Any]]:
    """The lines about requests."""
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    return [line for line in lines if line["logger"] == "threadmark.http" and line["event"] == "request"]


async def test_a_request_is_one_line(api: Api, written: io.StringIO) -> None:
    """Method, route, outcome, time, and who, by names that mean something to the operator."""
    key = await api.key(Scope.ADMIN)

    response = await api.call("DELETE", "/admin/keys/0123456789abcdef?x=1", key)

    (line,) = requests(written)
    assert {name: line[name] for name in ("method", "route", "status", "tenant_id", "key_id", "request_id")} == {
        "method": "DELETE",
        "route": "/admin/keys/{key_id}",
        "status": response.status_code,
        "tenant_id": "default",
        "key_id": key.split("_")[1],
        "request_id": response.headers["x-request-id"],
    }
    assert line["duration_ms"] == 0.0
    assert line.keys() <= {
        *("method", "route", "status", "tenant_id", "key_id", "request_id", "duration_ms", "client"),
        *("event", "logger", "level", "at"),
    }


async def test_a_stranger_and_a_stray_are_lines_too(api: Api, written: io.StringIO) -> None:
    """Refusals before and outside the routes are logged like all others, without a path that a client wrote."""
    await api.call("GET", "/info")
    await api.call("GET", f"/{CANARY}")
    await api.call("FOO", "/ok", headers={"host": "a b"})

    assert [(line["route"], line["status"]) for line in requests(written)] == [
        ("/info", 401),
        ("(none)", 404),
        ("(none)", 400),
    ]
    assert [line["method"] for line in requests(written)] == ["GET", "GET", "OTHER"]
    assert CANARY not in written.getvalue()


async def test_nothing_that_was_sent_is_in_the_log(api: Api, written: io.StringIO) -> None:
    """Neither bodies, nor headers, nor queries, nor paths, nor keys, whatever the outcome."""
    key = await api.key(Scope.ADMIN)
    headers = {"cookie": CANARY, "user-agent": CANARY, "x-forwarded-for": CANARY, "idempotency-key": CANARY}

    for body in (f'{{"label": "{CANARY}", "scopes": ["read"]}}', f'{{"{CANARY}": 1}}', f'"{CANARY}', CANARY):
        await api.call("POST", f"/admin/keys?{CANARY}={CANARY}", key, content=body, headers=headers)
        await api.call("POST", "/admin/keys", key, content=body, headers=headers)
    await api.call("DELETE", f"/admin/keys/{CANARY}", key)
    await api.call("GET", "/info", f"tm_0123456789abcdef_{CANARY}")

    assert len(requests(written)) == 10
    assert CANARY not in written.getvalue()
    assert key.split("_")[2] not in written.getvalue()
