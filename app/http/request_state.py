"""What the edge notes on a request for those behind it."""

from collections.abc import Mapping
from typing import Any, cast

__all__ = ["client_of", "facts_of", "header_of", "headers_of", "mark", "mark_caller", "request_id_of"]


def mark(scope: Any, *, request_id: str, client: str) -> None:
    """Note the request's id and its client's address."""
    state = scope.setdefault("state", {})
    state["request_id"] = request_id
    state["client"] = client


def mark_caller(scope: Any, *, tenant_id: str, key_id: str) -> None:
    """Note who calls, for the log."""
    scope["state"]["who"] = {"tenant_id": tenant_id, "key_id": key_id}


def facts_of(scope: Mapping[str, Any]) -> dict[str, str]:
    """What was noted, for a log line: `request_id`, `client` and, once known, `tenant_id` and `key_id`."""
    state = scope["state"]
    return {"request_id": state["request_id"], "client": state["client"], **state.get("who", {})}


def request_id_of(scope: Mapping[str, Any]) -> str:
    """The id in `x-request-id`, in error bodies and in the log."""
    return cast(str, scope["state"]["request_id"])


def client_of(scope: Mapping[str, Any]) -> str:
    """The address the request counts for."""
    return cast(str, scope["state"]["client"])


def headers_of(scope: Mapping[str, Any], name: bytes) -> list[str]:
    """The values of every header of this name (lower case), in order."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def header_of(scope: Mapping[str, Any], name: bytes) -> str | None:
    """The value of the header of this name; None without one, or with several."""
    values = headers_of(scope, name)
    return values[0] if len(values) == 1 else None
