"""The shield: refuses what no route should ever see, and puts the same guards on every answer."""

import re
from collections.abc import Collection
from ipaddress import IPv6Address

from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from threadmark.app.edge.answer import refuse
from threadmark.app.http.problem import Problem
from threadmark.app.http.request_state import header_of, headers_of

__all__ = ["SECURITY_HEADERS", "Shield"]

#: An API answers data: nothing of it is ever a page, a frame or a script, and nothing of it is for a shared cache.
SECURITY_HEADERS: tuple[tuple[str, str], ...] = (
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
    ("cache-control", "no-store"),
)

_HOST = re.compile(r"(?:(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]{0,253})?)|\[(?P<six>[0-9A-Fa-f:.]{2,45})\])(?::\d{1,5})?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Shield:
    """Refuses odd hosts, control characters in paths and compressed bodies; adds SECURITY_HEADERS.

    A body is never decompressed: a bomb of a few kilobytes would pass every limit on bytes read.
    """

    def __init__(self, app: ASGIApp, *, allowed_hosts: Collection[str]) -> None:
        self._app = app
        self._allowed_hosts = frozenset(allowed_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        guarded = _guarded(send)
        if scope["type"] == ScopeType.HTTP and (problem := self._problem_with(scope)) is not None:
            await refuse(scope, guarded, problem)
        else:
            await self._app(scope, receive, guarded)

    def _problem_with(self, scope: HTTPScope) -> Problem | None:
        if not self._is_right_host(header_of(scope, b"host")):
            return Problem(status=400, code="bad_host", detail="the Host header names no host of this server")
        if _CONTROL.search(scope["path"]):
            return Problem(status=422, code="bad_path", detail="the path holds a control character")
        if any(value.strip().lower() not in {"", "identity"} for value in headers_of(scope, b"content-encoding")):
            return Problem(
                status=415, code="compressed_body", detail="bodies are read as they are: send no Content-Encoding"
            )
        return None

    def _is_right_host(self, host: str | None) -> bool:
        found = _HOST.fullmatch(host) if host is not None else None
        if found is None:
            return False
        if six := found["six"]:
            try:
                name = str(IPv6Address(six))
            except ValueError:
                return False
        else:
            name = found["name"].lower()
        return not self._allowed_hosts or name in self._allowed_hosts


def _guarded(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", []))
            present = {name.lower() for name, _ in headers}
            headers += [
                (name.encode(), value.encode()) for name, value in SECURITY_HEADERS if name.encode() not in present
            ]
            message["headers"] = headers
        await send(message)

    return guarded
