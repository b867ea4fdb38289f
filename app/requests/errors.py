"""Errors on the wire: one table from the types of refusals to status and code, and the handlers that speak it.

A package that raises its own refusals adds them to `REFUSALS`; their text is the answer's `detail`, so it names nothing
that the caller may not know. What is not in the table is a defect: 500, with a request id and nothing else.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.types import ExceptionHandlersMap

from threadmark import memory
from threadmark.app.access.gate import Forbidden, TooMany, Unauthenticated
from threadmark.app.access.issue import KeyRefused
from threadmark.app.access.key import NoSuchKey
from threadmark.app.http import strict_json
from threadmark.app.http.allowed_values import with_allowed_values
from threadmark.app.http.body_errors import BodyRefused, ClientGone, NotJson
from threadmark.app.http.path_ids import BadEventId, BadId
from threadmark.app.http.problem import MEDIA_TYPE, Problem
from threadmark.app.http.request_state import facts_of, request_id_of
from threadmark.app.listing.cursors import BadCursor
from threadmark.app.listing.parameters import UnknownParameter
from threadmark.app.requests.idempotency import BadIdempotencyKey
from threadmark.compaction import NothingToUndo, PlanOutdated, PolicyMoved, RunInProgress, ViewBroken, ViewMoved
from threadmark.db import Condition
from threadmark.state import (
    AlreadyAnswered,
    AskedByAnother,
    BoundReached,
    CallOutdated,
    Conflict,
    DatabaseAway,
    KeyInProgress,
    KeyReused,
    NotFound,
    NothingToCancel,
    NothingToResume,
    NotInDoubt,
    OutcomeUnknown,
    Refused,
    ThreadBusy,
    ThreadExists,
    ThreadGone,
    TookTooLong,
    ValueRefused,
)

__all__ = ["REFUSALS", "Refusal", "handlers", "problem_of", "refusal_of"]

_LOG = logging.getLogger("threadmark.http")


@dataclass(frozen=True, slots=True)
class Refusal:
    """How a type of refusal is answered. `retry_after_s` stands in where the error itself names no time.

    The `condition` of a database that an error may have takes the place of the last word of `code`.
    """

    status: int
    code: str
    retry_after_s: float | None = None


#: The nearest base class of an error that is in the table decides.
REFUSALS: dict[type[Exception], Refusal] = {
    strict_json.Malformed: Refusal(400, "invalid_json"),
    strict_json.DuplicateKey: Refusal(400, "duplicate_key"),
    strict_json.NonFiniteNumber: Refusal(400, "non_finite_number"),
    strict_json.TooDeep: Refusal(422, "too_deep"),
    strict_json.TooManyKeys: Refusal(422, "too_many_keys"),
    strict_json.LoneSurrogate: Refusal(422, "lone_surrogate"),
    strict_json.NumberOutOfRange: Refusal(422, "number_out_of_range"),
    BadCursor: Refusal(400, "bad_cursor"),
    BadEventId: Refusal(400, "bad_event_id"),
    BadIdempotencyKey: Refusal(400, "bad_idempotency_key"),
    BodyRefused: Refusal(422, "invalid_body"),
    ClientGone: Refusal(400, "incomplete_body"),
    NotJson: Refusal(415, "unsupported_media_type"),
    UnknownParameter: Refusal(422, "unknown_parameter"),
    NoSuchKey: Refusal(404, "not_found"),
    KeyRefused: Refusal(422, "invalid_key"),
    BadId: Refusal(422, "invalid_id"),
    NotFound: Refusal(404, "not_found"),
    ThreadExists: Refusal(409, "thread_exists"),
    ThreadBusy: Refusal(409, "thread_busy"),
    ThreadGone: Refusal(404, "not_found"),
    NothingToCancel: Refusal(404, "nothing_to_cancel"),
    NothingToResume: Refusal(409, "nothing_to_resume"),
    AlreadyAnswered: Refusal(409, "already_answered"),
    AskedByAnother: Refusal(409, "asked_by_another"),
    CallOutdated: Refusal(409, "call_outdated"),
    NotInDoubt: Refusal(409, "not_in_doubt"),
    Conflict: Refusal(409, "conflict"),
    BoundReached: Refusal(429, "bound_reached"),
    Refused: Refusal(422, "refused"),
    ValueRefused: Refusal(422, "value_refused"),
    KeyReused: Refusal(422, "idempotency_key_reused"),
    KeyInProgress: Refusal(409, "idempotency_key_in_progress", retry_after_s=1),
    DatabaseAway: Refusal(503, "database_away", retry_after_s=1),
    TookTooLong: Refusal(503, "took_too_long", retry_after_s=1),
    OutcomeUnknown: Refusal(503, "outcome_unknown", retry_after_s=1),
    memory.Refused: Refusal(422, "refused"),
    memory.ScopeRefused: Refusal(422, "scope_refused"),
    memory.FilterRefused: Refusal(422, "filter_refused"),
    memory.UnknownAssertion: Refusal(404, "not_found"),
    memory.UnknownJob: Refusal(404, "not_found"),
    memory.UnknownQuarantine: Refusal(404, "not_found"),
    memory.AlreadyRetracted: Refusal(409, "already_retracted"),
    memory.ImportUnderWay: Refusal(409, "import_under_way", retry_after_s=5),
    memory.CannotUndo: Refusal(409, "cannot_undo"),
    memory.BoundReached: Refusal(429, "bound_reached"),
    memory.ReceiptReused: Refusal(422, "idempotency_key_reused"),
    memory.ReceiptInProgress: Refusal(409, "idempotency_key_in_progress", retry_after_s=1),
    memory.Unavailable: Refusal(503, "memory_unavailable", retry_after_s=1),
    Unauthenticated: Refusal(401, "unauthenticated"),
    Forbidden: Refusal(403, "forbidden"),
    TooMany: Refusal(429, "too_many_requests"),
    RunInProgress: Refusal(409, "run_in_progress", retry_after_s=1),
    PolicyMoved: Refusal(412, "precondition_failed"),
    ViewMoved: Refusal(409, "view_moved", retry_after_s=1),
    PlanOutdated: Refusal(409, "view_moved", retry_after_s=1),
    NothingToUndo: Refusal(409, "nothing_to_undo"),
    ViewBroken: Refusal(422, "view_broken"),
}

#: Codes of what the framework itself refuses.
_CODES: dict[int, str] = {
    400: "bad_request",
    404: "not_found",
    405: "method_not_allowed",
    413: "body_too_large",
    422: "invalid_request",
}
#: How the framework says that a parameter of the query or a header is missing; it says so in this sentence alone.
_MISSING = re.compile(r"Missing required \w+ parameter '([^']+)'")
_UNAUTHENTICATED = 401
_INTERNAL_ERROR = 500


def handlers() -> ExceptionHandlersMap:
    """The exception handlers of the application."""
    return {Exception: _answer}


def refusal_of(error: Exception) -> Refusal | None:
    """The row of the table for this error."""
    return next((REFUSALS[kind] for kind in type(error).__mro__ if kind in REFUSALS), None)


def problem_of(error: Exception, declared: Mapping[str, Any] | None = None) -> Problem:
    """The problem that the client gets for the error; `declared` are the types of the route's parameters by name."""
    if (refusal := refusal_of(error)) is not None:
        return _refused(error, refusal)
    if isinstance(error, ValidationException):
        return _invalid(error, declared or {})
    if isinstance(error, HTTPException) and error.status_code < _INTERNAL_ERROR:
        return Problem(
            status=error.status_code,
            code=_CODES.get(error.status_code, "bad_request"),
            detail=error.detail,
            headers=error.headers or {},
        )
    return Problem(
        status=_INTERNAL_ERROR,
        code="internal_error",
        detail="the server failed to answer; the request id leads to the reason in its log",
    )


def _answer(request: "Request[Any, Any, Any]", error: Exception) -> Response[bytes]:
    problem = problem_of(error, _declared_by(request))
    if problem.status >= _INTERNAL_ERROR:
        _LOG.error("a request failed", extra=facts_of(request.scope), exc_info=error)
    body = problem.body(request_id_of(request.scope))
    return Response(body, status_code=problem.status, media_type=MEDIA_TYPE, headers=dict(problem.headers))


def _declared_by(request: "Request[Any, Any, Any]") -> Mapping[str, Any]:
    """The types of the route's parameters, by name; nothing where no route was found."""
    handler: Any = request.scope.get("route_handler")
    if handler is None:
        return {}
    return {name: field.annotation for name, field in handler.parsed_fn_signature.parameters.items()}


def _refused(error: Exception, refusal: Refusal) -> Problem:
    members = {name: getattr(error, name, None) for name in ("path", "bound")}
    return Problem(
        status=refusal.status,
        code=_code_of(error, refusal),
        detail=str(error),
        extra={name: member for name, member in members.items() if member is not None},
        headers=_headers_of(error, refusal),
    )


def _condition_of(error: Exception) -> Condition | None:
    return error.condition if isinstance(error, DatabaseAway | memory.Unavailable) else None


def _code_of(error: Exception, refusal: Refusal) -> str:
    condition = _condition_of(error)
    if condition is None or condition is Condition.AWAY:
        return refusal.code
    return f"{refusal.code.rpartition('_')[0]}_{condition}"


def _headers_of(error: Exception, refusal: Refusal) -> Mapping[str, str]:
    if refusal.status == _UNAUTHENTICATED:
        return {"www-authenticate": "Bearer"}
    condition = _condition_of(error)
    by_table = refusal.retry_after_s if condition is None else condition.retry_after_s
    wait_s: float | None = getattr(error, "retry_after_s", by_table)
    return {} if wait_s is None else {"retry-after": str(max(1, ceil(wait_s)))}


def _invalid(error: ValidationException, declared: Mapping[str, Any]) -> Problem:
    """Parameters of the path, the query and the headers, as the framework checks them."""
    found = [each for each in error.extra if isinstance(each, dict)] if isinstance(error.extra, list) else []
    if missing := _MISSING.match(error.detail):
        found = [{"key": missing[1], "message": "is required"}]
    if any(each.get("key") == "data" and each.get("message") == "'data'" for each in found):
        return Problem(status=422, code="invalid_body", detail="$: a JSON body is required", extra={"path": "$"})
    said = "; ".join(f"{each.get('key', 'request')}: {_why(each, declared)}" for each in found)
    extra = {"path": str(found[0]["key"])} if found and "key" in found[0] else {}
    return Problem(status=422, code="invalid_parameter", detail=said or "the request is invalid", extra=extra)


def _why(found: Mapping[str, Any], declared: Mapping[str, Any]) -> str:
    why, key = str(found.get("message", "is invalid")), str(found.get("key"))
    return with_allowed_values(why, declared[key]) if key in declared else why
