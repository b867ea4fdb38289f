"""The drain: a refusal reaches its client even while that is still sending, and no client sends for ever."""

import asyncio
from collections.abc import Mapping
from typing import Any

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from threadmark.app.http.request_state import headers_of

__all__ = ["DRAIN_BYTES_MAX", "DRAIN_S", "Drain"]

#: Bytes of a refused body that are read and discarded; a client that sends more is disconnected.
DRAIN_BYTES_MAX = 4 * 2**20
DRAIN_S = 1.0
_REFUSED = 400


class Drain:
    """Reads the rest of a refused body, within bounds, before the refusal is sent; past them the connection is closed.

    Most clients read an answer when they have sent their request. One that is cut off in the middle may never see the
    refusal; one that is never cut off could send for as long as it likes.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP or not _announces_body(scope):
            await self._app(scope, receive, send)
            return
        body = _Body(receive)
        # A client that asked whether it should send at all has not begun: asking it for the rest would make it send.
        is_sending = not headers_of(scope, b"expect")

        async def draining(message: Message) -> None:
            is_refusal = message["type"] == "http.response.start" and message["status"] >= _REFUSED
            if is_refusal and not (is_sending and await body.drain()):
                message["headers"] = [*message["headers"], (b"connection", b"close")]  # type: ignore[typeddict-item]
            await send(message)

        await self._app(scope, body.receive, draining)


class _Body:
    """The body of a request on its way to the application."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._is_read = False

    async def receive(self) -> Any:
        message = await self._receive()
        if not (message["type"] == "http.request" and message.get("more_body", False)):
            self._is_read = True
        return message

    async def drain(self) -> bool:
        """Whether the body was read to its end, now or before."""
        try:
            async with asyncio.timeout(DRAIN_S):
                left = DRAIN_BYTES_MAX
                while not self._is_read and left > 0:
                    left -= len((await self.receive()).get("body", b""))
        except TimeoutError:
            return False
        return self._is_read


def _announces_body(scope: Mapping[str, Any]) -> bool:
    return bool(headers_of(scope, b"transfer-encoding")) or headers_of(scope, b"content-length") not in ([], ["0"])
