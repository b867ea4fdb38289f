"""Idempotency: which keys are taken, and which requests are one request."""

import pytest

from threadmark.app.http.strict_json import parse
from threadmark.app.requests.idempotency import BadIdempotencyKey, check_key, request_digest


def digest(raw: bytes, method: str = "POST", path: str = "/threads") -> str:
    """The digest of a request with this body."""
    return request_digest(method, path, parse(raw))


def test_the_order_of_keys_does_not_make_another_request() -> None:
    """A client that serialises a map twice may order it differently; it meant the same."""
    assert digest(b'{"a": 1, "b": {"c": 2, "d": 3}}') == digest(b'{"b":{"d":3,"c":2},"a":1}')


@pytest.mark.parametrize(
    "other",
    [
        digest(b'{"a": 1, "b": 3}'),
        digest(b'{"a": 1}'),
        digest(b'{"a": 1, "b": 2}', path="/threads/x"),
        digest(b'{"a": 1, "b": 2}', method="PUT"),
        digest(b'{"a": "1", "b": 2}'),
        digest(b'{"a": true, "b": 2}'),
        digest(b"[1, 2]"),
        request_digest("POST", "/threads", None),
    ],
)
def test_everything_else_does(other: str) -> None:
    """Another value, another type, another path or another method is another request."""
    assert other != digest(b'{"a": 1, "b": 2}')


def test_the_order_of_a_list_matters() -> None:
    """Messages have an order."""
    assert digest(b"[1, 2]") != digest(b"[2, 1]")


def test_no_header_is_no_key() -> None:
    """Without the header a request is new every time."""
    assert check_key([]) is None


@pytest.mark.parametrize("key", ["k", "k" * 255, "550e8400-e29b-41d4-a716-446655440000", "!~"])
def test_a_key_is_1_to_255_visible_ascii_characters(key: str) -> None:
    """What clients use as keys is taken as it is."""
    assert key == check_key([key])


@pytest.mark.parametrize("values", [[""], ["k" * 256], ["a b"], ["k\x7f"], ["\u00e9"], ["a\n"], ["a", "a"], ["a", "b"]])
def test_other_keys_are_refused(values: list[str]) -> None:
    """An empty, long, spaced or repeated header names no request."""
    with pytest.raises(BadIdempotencyKey):
        check_key(values)
