"""Answers: JSON bodies, new or replayed."""

from collections.abc import Mapping
from typing import Any

import msgspec
from litestar import Response

from threadmark.app.http.problem import MEDIA_TYPE
from threadmark.app.requests.request_key import replay
from threadmark.state import Reply

__all__ = ["json_answer", "once"]


def json_answer(value: Any, *, status_code: int = 200, headers: Mapping[str, str] | None = None) -> Response[bytes]:
    """`value` as the body of an answer."""
    body = msgspec.json.encode(value)
    return Response(body, status_code=status_code, media_type=MEDIA_TYPE, headers=dict(headers or {}))


def once(made: Reply | bytes) -> Response[bytes]:
    """The answer that a request made, or the stored one of its Idempotency-Key."""
    return replay(made) if isinstance(made, Reply) else Response(made, status_code=200, media_type=MEDIA_TYPE)
