"""The OpenAPI document: what Litestar generates, and what holds for every route beside."""

from collections.abc import Iterator
from typing import Any

from litestar import Litestar, Router
from litestar.enums import HttpMethod
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.spec import Components, SecurityScheme
from litestar.routes import HTTPRoute
from litestar.types import ControllerRouterHandler, Method
from litestar.types.internal_types import PathParameterDefinition

from threadmark.app.access.route_scopes import scope_needed

__all__ = ["config", "document_of"]

_PROBLEM = {
    "type": "object",
    "description": "Why a request was not honoured. Some codes come with further members, such as `path`.",
    "required": ["detail", "code", "request_id"],
    "properties": {
        "detail": {"type": "string", "description": "A sentence for people."},
        "code": {"type": "string", "description": "A word for programs."},
        "request_id": {"type": "string", "description": "The id of the request in the server's log."},
        "path": {"type": "string", "description": "The place in the body, or the parameter."},
        "bound": {"type": "string", "description": "The bound that is reached."},
    },
}
_EVERYWHERE = {
    "400": "The request is malformed: its host, its cursor, its JSON.",
    "422": "The request is well-formed and cannot be honoured; `path` names the place.",
    "429": "Too many requests with this key, too many wrong keys from this source, or as much of something as may be "
    "at once (`bound` names it); see `Retry-After`.",
    "500": "The server failed.",
}
_WITH_KEY = {
    "401": "No API key, or one that opens nothing.",
    "403": "The key lacks the scope of this route.",
}
_WITH_ID = {"404": "No such thing in the tenant of the key."}
_WITH_BODY = {
    "413": "The body is larger than the limit.",
    "415": "The body is not JSON, or is compressed.",
}


class _NoPages(Router):
    """Takes none of the routes Litestar would add: pages load scripts from elsewhere, and need no key."""

    def register(self, value: ControllerRouterHandler) -> list[Any]:
        """Take nothing."""
        return []


def config(version: str) -> OpenAPIConfig:
    """How the document is generated; no route serves it by itself."""
    return OpenAPIConfig(
        title="Threadmark",
        version=version,
        description="Durable chat agents over HTTP. Every route but `/ok` and `/ready` needs an API key.",
        use_handler_docstrings=True,
        operation_id_creator=_operation_id,
        openapi_router=_NoPages("/", route_handlers=[]),
        components=Components(
            security_schemes={
                "ApiKey": SecurityScheme(type="apiKey", name="X-Api-Key", security_scheme_in="header"),
                "Bearer": SecurityScheme(type="http", scheme="bearer"),
            }
        ),
        security=[{"ApiKey": []}, {"Bearer": []}],
    )


def _operation_id(
    handler: HTTPRouteHandler, _method: Method | HttpMethod, _path: list[str | PathParameterDefinition]
) -> str:
    return handler.handler_name.rpartition(".")[2]


def document_of(app: Litestar) -> dict[str, Any]:
    """The whole document: scopes, errors and closed request bodies included."""
    document: dict[str, Any] = app.openapi_schema.to_schema()
    schemas = document["components"].setdefault("schemas", {})
    schemas["Problem"] = _PROBLEM
    for path, method, scope in _declared(app):
        operation = document["paths"].get(path, {}).get(method)
        if operation is not None:
            _complete(operation, scope, has_id="{" in path)
            _close_bodies(operation, schemas)
    return document


def _declared(app: Litestar) -> Iterator[tuple[str, str, str | None]]:
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for handler in route.route_handlers:
                if handler.include_in_schema is not False:
                    for method in handler.http_methods:
                        yield route.path_format, method.lower(), scope_needed(handler)


def _complete(operation: dict[str, Any], scope: str | None, *, has_id: bool) -> None:
    answers = dict(_EVERYWHERE)
    if scope is None:
        operation["security"] = []
    else:
        operation["x-scope"] = str(scope)
        answers |= _WITH_KEY
    answers |= _WITH_ID if has_id else {}
    answers |= _WITH_BODY if "requestBody" in operation else {}
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for status, description in answers.items():
        operation["responses"][status] = {"description": description, "content": content}
    operation["responses"] = dict(sorted(operation["responses"].items()))


def _close_bodies(part: object, schemas: dict[str, Any]) -> None:
    """Say of every object that a request may hold what its code says: an unknown member is refused."""
    pending = [part["requestBody"]] if isinstance(part, dict) and "requestBody" in part else []
    seen: set[str] = set()
    while pending:
        each = pending.pop()
        if isinstance(each, list):
            pending.extend(each)
        elif isinstance(each, dict):
            pending.extend(each.values())
            name = str(each.get("$ref", "")).rpartition("/")[2]
            if name in schemas and name not in seen:
                seen.add(name)
                if "properties" in schemas[name]:
                    schemas[name].setdefault("additionalProperties", False)
                pending.append(schemas[name])
