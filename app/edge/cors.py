"""Cross-origin calls from browsers: denied, unless the operator names the origin."""

from collections.abc import Collection

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from threadmark.app.edge.answer import answer
from threadmark.app.http.request_state import header_of

__all__ = ["EXPOSED_HEADERS", "Cors"]

ALLOWED_METHODS = "GET, POST, PUT, PATCH, DELETE"
ALLOWED_HEADERS = "authorization, content-type, idempotency-key, last-event-id, prefer, x-api-key"
EXPOSED_HEADERS = (
    "content-location, idempotent-replayed, location, retry-after, x-pagination-next, x-pagination-total, x-request-id"
)
PREFLIGHT_KEPT_S = 600


class Cors:
    """Answers preflights and marks answers for the allowed origins; for others it says nothing, so browsers refuse.

    Keys travel in headers and never in cookies: credentials are not allowed to any origin.
    """

    def __init__(self, app: ASGIApp, *, allowed_origins: Collection[str]) -> None:
        self._app = app
        self._allowed = frozenset(allowed_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origin = header_of(scope, b"origin")
        if scope["type"] != ScopeType.HTTP or origin is None or not self._allowed:
            await self._app(scope, receive, send)
            return
        headers = [("vary", "Origin")]
        if origin.lower() in self._allowed:
            headers += [("access-control-allow-origin", origin), ("access-control-expose-headers", EXPOSED_HEADERS)]
        if scope["method"] == "OPTIONS" and header_of(scope, b"access-control-request-method") is not None:
            await answer(send, 204, [*headers, *_PREFLIGHT] if len(headers) > 1 else headers)
        else:
            await self._app(scope, receive, _marking(send, headers))


_PREFLIGHT = (
    ("access-control-allow-methods", ALLOWED_METHODS),
    ("access-control-allow-headers", ALLOWED_HEADERS),
    ("access-control-max-age", str(PREFLIGHT_KEPT_S)),
)


def _marking(send: Send, headers: list[tuple[str, str]]) -> Send:
    async def marking(message: Message) -> None:
        if message["type"] == "http.response.start":
            marks = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
            message["headers"] = [*message.get("headers", []), *marks]
        await send(message)

    return marking
