"""The hang-up: work that only its client waits for ends when the client has gone."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from threadmark.app.access.route_scopes import ends_with_client

__all__ = ["HangUp"]


class HangUp:
    """Cancels a request whose client went before its answer began, if nothing is left half done by that.

    Those are reads, and routes that declare that they may be cancelled (see `ends_with_client`).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP or not ends_with_client(scope["route_handler"]):
            await self._app(scope, receive, send)
            return
        line = _Line(receive, _canceller())
        relaying = asyncio.create_task(line.relay())

        async def sent(message: Message) -> None:
            if not relaying.done() and message["type"] == "http.response.start":
                # From here on the answer itself watches its client, and a refusal reads the rest of the body.
                relaying.cancel()
                await asyncio.wait([relaying])
            await send(message)

        try:
            await self._app(scope, line.receive, sent)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not line.is_gone or task is None or task.uncancel():
                raise
        finally:
            relaying.cancel()


def _canceller() -> Callable[[], object]:
    task = asyncio.current_task()
    return (lambda: None) if task is None else task.cancel


class _Line:
    """What the client sends, on its way to the application; a part of a body is taken when the one before was."""

    def __init__(self, receive: Callable[[], Awaitable[Any]], on_gone: Callable[[], object]) -> None:
        self._receive, self._on_gone = receive, on_gone
        self._kept: list[Any] = []
        self._changed = asyncio.Condition()
        self._ended = False
        self.is_gone = False

    async def relay(self) -> None:
        """Pass on what comes, until the client has gone."""
        try:
            while not self.is_gone:
                message = await self._receive()
                async with self._changed:
                    self._kept.append(message)
                    self._changed.notify_all()
                    self.is_gone = message["type"] == "http.disconnect"
                    while message.get("more_body") and self._kept:
                        await self._changed.wait()
            self._on_gone()
        finally:
            self._ended = True
            async with self._changed:
                self._changed.notify_all()

    async def receive(self) -> Any:
        """The next message."""
        async with self._changed:
            while not self._kept and not self._ended:
                await self._changed.wait()
            if self._kept:
                message = self._kept.pop(0)
                self._changed.notify_all()
                return message
        return await self._receive()
