"""The one shape of errors: `{"detail", "code", "request_id", …}`, as JSON, from every layer that refuses."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["MEDIA_TYPE", "Problem"]

MEDIA_TYPE = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a request was refused.

    Attributes:
        status: The HTTP status, 400 to 599.
        code: A word for programs; it does not change between versions.
        detail: A sentence for people.
        extra: Further members of the body, such as `path`.
        headers: Headers that belong to the status, such as `Retry-After`.
    """

    status: int
    code: str
    detail: str
    extra: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self, request_id: str) -> bytes:
        """The body of the answer."""
        members = {"detail": self.detail, "code": self.code, "request_id": request_id, **self.extra}
        return json.dumps(members).encode()
