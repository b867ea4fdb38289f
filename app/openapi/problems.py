"""Which refusals an operation may answer with, and the schema of them all."""

from collections.abc import Collection, Mapping
from typing import Any

from threadmark.app.openapi.operation import Operation

__all__ = ["CONFLICTS", "MISSING", "PROBLEM", "refusals_of"]

PROBLEM: dict[str, Any] = {
    "title": "Problem",
    "type": "object",
    "description": "Why a request was refused. Some codes come with further members, such as `path`.",
    "required": ["detail", "code", "request_id"],
    "properties": {
        "detail": {"type": "string", "description": "A sentence for people."},
        "code": {"type": "string", "description": "A word for programs."},
        "request_id": {"type": "string", "description": "The id of the request in the server's log."},
        "path": {"type": "string", "description": "The place in the body, or the parameter."},
        "bound": {"type": "string", "description": "The bound that is reached."},
    },
}
_RETRY_AFTER = {
    "Retry-After": {
        "description": "Seconds after which the same request is welcome.",
        "schema": {"type": "integer", "minimum": 1},
    }
}
_CHALLENGE = {"WWW-Authenticate": {"description": "How to authenticate.", "schema": {"type": "string"}}}

_DESCRIPTIONS: dict[int, str] = {
    400: "The request is malformed: its host, its cursor, its JSON.",
    401: "No API key, or one that opens nothing.",
    403: "The key lacks the scope of this route.",
    404: "No such thing in the tenant of the key.",
    409: "It does not go with how things stand now; `code` says what is in the way.",
    412: "The version is none of those in `If-Match`, or `If-None-Match` found one.",
    413: "The body is larger than the limit.",
    415: "The body is not JSON, or is compressed.",
    422: "The request is well-formed and cannot be carried out; `path` names the place.",
    429: "Too many requests with this key, too many wrong keys from this source, or as much of something as may be at "
    "once (`bound` names it).",
    500: "The server failed.",
    503: "What the answer needs is not there now: a database, memory, or time to answer.",
}
_HEADERS: Mapping[int, dict[str, Any]] = {401: _CHALLENGE, 429: _RETRY_AFTER, 503: _RETRY_AFTER}

_ALWAYS = {400, 422, 500}
_WITH_KEY = {401, 403, 429, 503}
_WITH_BODY = {413, 415}
#: The same Idempotency-Key may be in progress; a condition may not hold.
_IDEMPOTENT, _CONDITIONAL = "Idempotency-Key", "If-Match"

#: Operations that look up what their body names, beside those with an id in their path.
MISSING = frozenset({"cancel_runs_in_bulk", "create_key", "redrive", "stream_stateless_run", "wait_stateless_run"})
#: Operations that may meet a state in which they cannot be done, beside those that take an Idempotency-Key.
CONFLICTS = frozenset({"cancel", "cancel_job", "pause_job", "redrive", "remove_run", "resume_job", "retry"})


def refusals_of(operation: Operation, headers: Collection[str]) -> dict[str, dict[str, Any]]:
    """The refusals by status, of an operation that takes these `headers`."""
    statuses = set(_ALWAYS)
    if operation.scope is not None:
        statuses |= _WITH_KEY
    if "{" in operation.path or operation.name in MISSING:
        statuses.add(404)
    if _IDEMPOTENT in headers or operation.name in CONFLICTS:
        statuses.add(409)
    if _CONDITIONAL in headers:
        statuses.add(412)
    if operation.body is not None:
        statuses |= _WITH_BODY
    if operation.body_media_type is not None:
        statuses.add(413)
    return {str(status): _refusal(status) for status in sorted(statuses)}


def _refusal(status: int) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    refusal: dict[str, Any] = {"description": _DESCRIPTIONS[status], "content": content}
    return {**refusal, "headers": _HEADERS[status]} if status in _HEADERS else refusal
