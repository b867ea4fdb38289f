"""The whole document: Litestar's paths and parameters, our types, refusals and forms."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from litestar import Litestar, Router
from litestar.enums import HttpMethod
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.spec import Components, SecurityScheme
from litestar.types import ControllerRouterHandler, Method
from litestar.types.internal_types import PathParameterDefinition

from threadmark.app.openapi.formats import add_formats
from threadmark.app.openapi.kinds import Kinds
from threadmark.app.openapi.operation import Operation, operations_of
from threadmark.app.openapi.problems import PROBLEM, refusals_of

__all__ = ["EXAMPLES", "config", "document_of"]

_JSON = "application/json"
#: Requests and answers by operation, as they were recorded of a server (`python -m tests.support.recorded_examples`).
EXAMPLES = Path(__file__).with_name("examples.json")


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
    """The whole document. Every type is described as the decoder and the encoder of the API read it."""
    document: dict[str, Any] = app.openapi_schema.to_schema()
    operations = list(operations_of(app))
    kinds = Kinds(operations)
    examples: dict[str, Any] = json.loads(EXAMPLES.read_bytes())
    document["components"]["schemas"] = {**kinds.components, "Problem": PROBLEM}
    for operation in operations:
        _complete(
            document["paths"][operation.path][operation.method], operation, kinds, examples.get(operation.name, {})
        )
    return document


def _complete(shown: dict[str, Any], operation: Operation, kinds: Kinds, examples: Mapping[str, Any]) -> None:
    if operation.scope is None:
        shown["security"] = []
    else:
        shown["x-scope"] = operation.scope
    shown["tags"] = [operation.path.split("/")[1]]
    _describe_parameters(shown, operation, kinds)
    shown.pop("requestBody", None)
    if operation.body is not None:
        content: dict[str, Any] = {_JSON: {"schema": kinds.schema_of(operation.body)}}
        if (request := examples.get("request")) is not None:
            content[_JSON]["example"] = request
        shown["requestBody"] = {"content": content, "required": not operation.is_body_optional}
    elif operation.body_media_type is not None:
        content = {operation.body_media_type: {"schema": {"type": "string"}}}
        shown["requestBody"] = {"content": content, "required": True}
    headers = {each["name"] for each in shown.get("parameters", ()) if each["in"] == "header"}
    shown["responses"] = refusals_of(operation, headers)
    for status, answer in operation.answers.items():
        answer_shown: dict[str, Any] = {"description": answer.description}
        if answer.kind is not None:
            answer_shown["content"] = {answer.media_type: {"schema": kinds.schema_of(answer.kind)}}
            if (example := examples.get("answers", {}).get(str(status))) is not None:
                answer_shown["content"][answer.media_type]["example"] = example
        shown["responses"][str(status)] = answer_shown
    shown["responses"] = dict(sorted(shown["responses"].items()))


def _describe_parameters(shown: dict[str, Any], operation: Operation, kinds: Kinds) -> None:
    """Describe the parameters of an operation by their types, with the bounds that the framework checks."""
    for parameter in shown.get("parameters", ()):
        name, by_litestar = parameter["name"], parameter["schema"]
        own = operation.parameters.get(name)
        # A dependency takes its parameter as text.
        schema = {"type": "string"} if own is None else {**kinds.schema_of(own.kind), **own.bounds}
        if by_litestar.get("default") is not None:
            schema["default"] = by_litestar["default"]
        add_formats(operation.path, name, schema)
        parameter["schema"] = schema
