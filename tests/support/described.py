"""Whether answers are as the OpenAPI document says: status, headers, media type and body."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import httpx

from tests.support.json_schema import faults

__all__ = ["Document"]

_JSON = "application/json"
_BAD_REQUEST, _METHOD_NOT_ALLOWED = 400, 405
_METHODS = ("get", "put", "post", "patch", "delete")


@dataclass(frozen=True)
class Document:
    """The document, to compare answers with."""

    plain: Mapping[str, Any]

    def check(self, response: httpx.Response) -> None:
        """Raises AssertionError if the answer to a request of a described path is not as it is described."""
        found = list(self.faults_of(response))
        request = response.request
        assert not found, f"{request.method} {request.url.path}: {response.status_code}: {'; '.join(found)}"

    def faults_of(self, response: httpx.Response) -> Iterator[str]:
        """What is not as it is described, a sentence each; nothing of a path that is not described."""
        path, method = self.path_of(response.request.url.path), response.request.method.lower()
        if path is None:
            return
        item = self.plain["paths"][path]
        if method not in item:
            yield from _of_other_method(method, item, response)
            return
        answers = item[method]["responses"]
        answer = answers.get(str(response.status_code))
        if answer is None:
            yield f"the status is none of {', '.join(answers)}: {response.text[:200]}"
            return
        for name, header in answer.get("headers", {}).items():
            if name in response.headers:
                yield from self._of_header(name, response.headers[name], header["schema"])
            elif header.get("required"):
                yield f"the header {name} is missing"
        yield from self._of_body(response, answer.get("content"))

    def _of_header(self, name: str, text: str, schema: Mapping[str, Any]) -> Iterator[str]:
        value = int(text) if schema["type"] == "integer" and text.isdecimal() else text
        yield from faults(value, schema, self._schemas, name)

    def _of_body(self, response: httpx.Response, content: Mapping[str, Any] | None) -> Iterator[str]:
        media_type = response.headers.get("content-type", "").partition(";")[0]
        if content is None:
            if response.content:
                yield f"there is a body, of {media_type}"
        elif media_type not in content:
            yield f"the media type {media_type!r} is none of {', '.join(content)}"
        else:
            value = json.loads(response.content) if media_type == _JSON else response.text
            yield from faults(value, content[media_type]["schema"], self._schemas, closed=True)

    def path_of(self, path: str) -> str | None:
        """The described path that this path is one of."""
        return next((template for pattern, template in self._patterns if pattern.fullmatch(path)), None)

    @cached_property
    def _schemas(self) -> Mapping[str, Any]:
        schemas: Mapping[str, Any] = self.plain["components"]["schemas"]
        return schemas

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], str]]:
        """The paths as patterns, those with fewer parameters first: they win, as in the router."""
        templates = sorted(self.plain["paths"], key=lambda template: template.count("{"))
        return [(re.compile(re.sub(r"\{[^}]+\}", "[^/]+", template)), template) for template in templates]


def _of_other_method(method: str, item: Mapping[str, Any], response: httpx.Response) -> Iterator[str]:
    """Another method is refused, with those that there are. OPTIONS tells them; a foreign host is told nothing."""
    if method == "options" or response.status_code == _BAD_REQUEST:
        return
    allowed = set(response.headers.get("allow", "").lower().split(", "))
    if response.status_code != _METHOD_NOT_ALLOWED or allowed != {*item.keys() & set(_METHODS), "options"}:
        yield f"is not refused with the methods that there are, but says {sorted(allowed)}"
