"""Answers that stay open, and the three ways in which they end: all is sent, the client has gone, or the server closes.

Whatever ends one, its chunks are closed at once, so that no subscription goes on for a reader who has left. Chunks go
out no faster than the client takes them.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from typing import Any

from litestar import Request, Response
from litestar.enums import MediaType
from litestar.response.base import ASGIResponse
from litestar.types import Receive, Send

from threadmark.app.access.seats import Seat
from threadmark.app.http.problem import MEDIA_TYPE
from threadmark.app.operations.logs import mark_cut
from threadmark.app.resources import Resources
from threadmark.db.execution.pools import limit_each

__all__ = ["LiveResponse", "whole_or_cut"]

#: So long after the stop an answer in slices goes on (seconds); less than the grace of requests, in which it is cut.
WHOLE_S = 2.0
Chunks = AsyncGenerator[bytes, None]
Act = Callable[[], Awaitable[None]]


class LiveResponse(Response[None]):
    """Sends chunks as they come.

    `until` returns when the server has to close the answer. The connection is cut then, so that no client takes a part
    for the whole: one whose stream of events ended in order asks how the run stands, and believes that it has
    every event if the run has ended by then. `on_gone` is awaited when the client went before all was sent. `seat` is
    released at the end, whichever it is.
    """

    def __init__(
        self,
        chunks: Chunks,
        *,
        until: Act,
        headers: Mapping[str, str],
        media_type: str,
        on_gone: Act | None = None,
        seat: Seat | None = None,
    ) -> None:
        super().__init__(None, headers=dict(headers), media_type=media_type, status_code=200)
        self._chunks = chunks
        self._until = until
        self._on_gone = on_gone
        self._seat = seat

    def to_asgi_response(
        self,
        app: Any,
        request: Request[Any, Any, Any],
        *,
        background: Any = None,
        cookies: Iterable[Any] | None = None,
        encoded_headers: Iterable[tuple[bytes, bytes]] | None = None,
        headers: dict[str, str] | None = None,
        is_head_response: bool = False,
        media_type: MediaType | str | None = None,
        status_code: int | None = None,
        type_encoders: Any = None,
    ) -> ASGIResponse:
        """The answer as the framework sends it."""
        return _LiveAnswer(
            self._send_all,
            headers={**(headers or {}), **self.headers},
            media_type=self.media_type,
            status_code=self.status_code,
        )

    async def _send_all(self, send: Send, receive: Receive) -> None:
        # It comes in parts, each of which has the limit of an answer.
        limit_each()
        sending = asyncio.create_task(_send_chunks(self._chunks, send))
        gone = asyncio.create_task(_until_gone(receive))
        dismissed = asyncio.ensure_future(self._until())
        tasks: tuple[asyncio.Future[None], ...] = (sending, gone, dismissed)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            ended = [task for task in tasks if task.done()]
        finally:
            await _stop(tasks)
            if self._seat is not None:
                self._seat.release()
        if sending in ended:
            sending.result()
            await _finish(send)
        elif gone in ended:
            if self._on_gone is not None:
                await self._on_gone()
        else:
            dismissed.result()
            mark_cut()


def whole_or_cut(resources: Resources, chunks: Chunks, *, media_type: str = MEDIA_TYPE) -> LiveResponse:
    """An answer in slices, each made when the client has taken the one before; cut off WHOLE_S after the server's stop.

    It ends by itself, so it has the grace of any request: its client cannot know of the stop.
    """

    async def stopped() -> None:
        await resources.stopping.wait()
        await asyncio.sleep(WHOLE_S)

    return LiveResponse(chunks, until=stopped, headers={}, media_type=media_type)


class _LiveAnswer(ASGIResponse):
    """An answer of unknown length."""

    _should_set_content_length = False

    def __init__(
        self,
        send_all: Callable[[Send, Receive], Awaitable[None]],
        *,
        headers: dict[str, str],
        media_type: MediaType | str | None,
        status_code: int | None,
    ) -> None:
        super().__init__(headers=headers, media_type=media_type, status_code=status_code)
        self._send_all = send_all

    async def send_body(self, send: Send, receive: Receive) -> None:
        """Send the chunks."""
        await self._send_all(send, receive)


async def _send_chunks(chunks: Chunks, send: Send) -> None:
    async with contextlib.aclosing(chunks):
        async for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            # A client that takes everything at once would otherwise have the event loop for itself.
            await asyncio.sleep(0)


async def _finish(send: Send) -> None:
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _stop(tasks: Iterable["asyncio.Future[None]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
