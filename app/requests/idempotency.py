"""Idempotency keys: which are taken, and when two requests are the same one."""

import hashlib
import json
import re
from typing import Any

__all__ = ["KEY_CHARS_MAX", "BadIdempotencyKey", "check_key", "request_digest"]

KEY_CHARS_MAX = 255
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


class BadIdempotencyKey(ValueError):
    """The Idempotency-Key header names no request; nothing was done."""

    def __init__(self) -> None:
        super().__init__(f"an Idempotency-Key is 1 to {KEY_CHARS_MAX} visible ASCII characters, given once")


def check_key(values: list[str]) -> str | None:
    """The key among the values of a request's Idempotency-Key headers; None without one. Raises BadIdempotencyKey."""
    match values:
        case []:
            return None
        case [key] if _KEY.fullmatch(key):
            return key
        case _:
            raise BadIdempotencyKey


def request_digest(method: str, path: str, body: Any) -> str:
    """SHA-256 (hex) of a request: equal for bodies that differ in the order of their keys alone.

    `body` is a value of `strict_json.parse`, None where the request had none. Numbers that are spelled differently
    (`1` and `1.0`) are different: what they mean is the reader's to say.
    """
    spelled = json.dumps([method, path, body], sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(spelled.encode()).hexdigest()
