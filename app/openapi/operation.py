"""One operation of the API: the types that its handler declares for the request and the answers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from litestar import Litestar, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import ParameterKwarg
from litestar.routes import HTTPRoute

from threadmark.app.access.route_scopes import scope_needed

__all__ = ["LINES", "Answer", "Operation", "Parameter", "operations_of", "takes"]

#: The media type of JSON lines.
LINES = "application/x-ndjson"
_JSON = "application/json"
_TAKES = "takes"


def takes(media_type: str) -> dict[str, Any]:
    """The `opt` of a route that reads its body by itself: what the body is."""
    return {_TAKES: media_type}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a status comes with. `kind` is the type of the body, None where there is none."""

    kind: Any
    media_type: str
    description: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a parameter is: its type, without null, and the bounds that the framework checks, as in a schema."""

    kind: Any
    bounds: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation.

    Attributes:
        name: The handler's name, which is the operation's id.
        path: As in the document, such as `/threads/{thread_id}`.
        method: In lower case.
        scope: What the key must be allowed; None without a key.
        body: The type of a JSON body, without null; None without one.
        is_body_optional: Whether the body may be left out.
        body_media_type: Of a body that is read as it is.
        parameters: The handler's own parameters, by their names in a request.
        answers: What the handler answers by itself, by status.
    """

    name: str
    path: str
    method: str
    scope: str | None
    body: Any
    is_body_optional: bool
    body_media_type: str | None
    parameters: Mapping[str, Parameter]
    answers: Mapping[int, Answer]


def operations_of(app: Litestar) -> Iterator[Operation]:
    """Every operation that the document describes."""
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for handler in route.route_handlers:
                if handler.include_in_schema is not False:
                    for method in handler.http_methods:
                        yield _operation(handler, route.path_format, method.lower())


def _operation(handler: HTTPRouteHandler, path: str, method: str) -> Operation:
    scope, data = scope_needed(handler), handler.parsed_data_field
    return Operation(
        name=handler.handler_name.rpartition(".")[2],
        path=path,
        method=method,
        scope=None if scope is None else str(scope),
        body=None if data is None else _without_null(data.annotation),
        is_body_optional=data is not None and data.has_default,
        body_media_type=handler.opt.get(_TAKES),
        parameters={
            given.name or name: Parameter(_without_null(field.annotation), _bounds(given))
            for name, field in handler.parsed_fn_signature.parameters.items()
            if isinstance(given := field.kwarg_definition, ParameterKwarg) and not field.is_di_field
        },
        answers=_answers(handler),
    )


def _bounds(given: ParameterKwarg) -> dict[str, Any]:
    named = {"ge": "minimum", "le": "maximum", "min_length": "minLength", "max_length": "maxLength"}
    return {said: bound for name, said in named.items() if (bound := getattr(given, name)) is not None}


def _answers(handler: HTTPRouteHandler) -> dict[int, Answer]:
    answers = {
        status: Answer(spec.data_container, spec.media_type, spec.description)
        for status, spec in (handler.responses or {}).items()
    }
    if handler.status_code not in answers:
        media_type = str(getattr(handler.media_type, "value", handler.media_type) or _JSON)
        kind = _returned(handler.parsed_fn_signature.return_type.annotation, media_type)
        answers[handler.status_code] = Answer(kind, media_type, "Done." if kind is None else "What was asked for.")
    return answers


def _returned(annotation: Any, media_type: str) -> Any:
    """The type of the body that a handler returns; text where it writes the body itself."""
    if get_origin(annotation) is Response:
        (annotation,) = get_args(annotation)
    if annotation is type(None):
        return None
    return annotation if media_type == _JSON else str


def _without_null(annotation: Any) -> Any:
    kinds = [each for each in get_args(annotation) if each is not type(None)]
    return kinds[0] if len(kinds) == 1 and type(None) in get_args(annotation) else annotation
