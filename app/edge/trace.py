"""The trace: one id, one log line and one measurement per request, however it ends."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from threadmark.app.http.client_address import Network, client_address, is_trusted
from threadmark.app.http.request_state import facts_of, header_of, headers_of, mark
from threadmark.app.operations.metrics import HttpMetrics

__all__ = ["NO_ROUTE", "Trace"]

#: The route of a request that reached none: its path is the client's text and no name of ours.
NO_ROUTE = "(none)"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"})
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
#: What is logged when the client had gone before an answer was begun.
_CLIENT_GONE = 499
_FAILED = 500
_LOG = logging.getLogger("threadmark.http")


class Trace:
    """Gives each request its id, and tells of it when it is over: route template and outcome, never path or content."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: HttpMetrics,
        trusted_proxies: Sequence[Network],
        monotonic: Callable[[], float],
        new_request_id: Callable[[], str],
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._trusted = trusted_proxies
        self._monotonic = monotonic
        self._new_request_id = new_request_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        request_id = self._mark(scope)
        began_s = self._monotonic()
        statuses: list[int] = []
        is_whole = False

        async def traced(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                message["headers"] = [*message.get("headers", []), (b"x-request-id", request_id.encode())]
            await send(message)

        self._metrics.begun()
        try:
            await self._app(scope, receive, traced)
            is_whole = True
        finally:
            status = statuses[0] if statuses else _CLIENT_GONE if is_whole else _FAILED
            self._tell(scope, status, self._monotonic() - began_s, is_whole=is_whole)

    def _mark(self, scope: Mapping[str, Any]) -> str:
        peer = scope["client"][0] if scope.get("client") else None
        request_id = self._new_request_id()
        said = header_of(scope, b"x-request-id")
        # Only a proxy of ours may name a request; a client could give two requests one name.
        if said and _REQUEST_ID.fullmatch(said) and is_trusted(peer, self._trusted):
            request_id = said
        client = client_address(peer, headers_of(scope, b"x-forwarded-for"), self._trusted)
        mark(scope, request_id=request_id, client=client)
        return request_id

    def _tell(self, scope: Mapping[str, Any], status: int, duration_s: float, *, is_whole: bool) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        route = scope.get("path_template") or NO_ROUTE
        self._metrics.ended(method=method, route=route, status=status, duration_s=duration_s)
        facts: dict[str, Any] = {
            "method": method,
            "route": route,
            "status": status,
            "duration_ms": round(duration_s * 1000, 3),
            **facts_of(scope),
        }
        if not is_whole:
            facts["is_broken_off"] = True
        _LOG.info("request", extra=facts)
