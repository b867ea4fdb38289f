"""A model's server that says each word when the test lets it: for what happens in the middle of a reply."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

__all__ = ["PacedCall", "PacedModel", "serve_paced_model"]

TIMEOUT_S = 20.0


class PacedCall:
    """One request to the model, answered word by word."""

    def __init__(self, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        self.body = body
        self.ended = asyncio.Event()
        self._writer = writer

    async def say(self, *pieces: str) -> None:
        """Stream these pieces of text."""
        for piece in pieces:
            await self._send({"content": piece}, None)

    async def end(self) -> None:
        """End the reply."""
        await self._send({}, "stop")
        self._writer.write(b"data: [DONE]\n\n")
        await self._writer.drain()
        self.ended.set()

    async def _send(self, delta: dict[str, Any], finish_reason: str | None) -> None:
        head = {"id": "paced", "object": "chat.completion.chunk", "created": 0, "model": "paced"}
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        self._writer.write(b"data: " + json.dumps({**head, "choices": [choice]}).encode() + b"\n\n")
        await self._writer.drain()


class PacedModel:
    """The server. `environment` makes Threadmark use it."""

    def __init__(self) -> None:
        self.url = ""
        self._calls: asyncio.Queue[PacedCall] = asyncio.Queue()
        self.open_calls: set[PacedCall] = set()

    @property
    def environment(self) -> dict[str, str]:
        """Settings of a server that asks this model."""
        return {"THREADMARK_MODEL": "paced", "OPENAI_BASE_URL": self.url, "OPENAI_API_KEY": "none-needed"}

    async def next_call(self, timeout_s: float = TIMEOUT_S) -> PacedCall:
        """The next request, as soon as there is one."""
        return await asyncio.wait_for(self._calls.get(), timeout_s)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, then close the connection."""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = next(
                int(line.partition(":")[2]) for line in head.splitlines() if line.startswith("content-length")
            )
            body = json.loads(await reader.readexactly(length))
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
            call = PacedCall(body, writer)
            self.open_calls.add(call)
            self._calls.put_nowait(call)
            # Until the reply was said, or the client has gone.
            gone = asyncio.ensure_future(reader.read())
            said = asyncio.ensure_future(call.ended.wait())
            await asyncio.wait({gone, said}, return_when=asyncio.FIRST_COMPLETED)
            gone.cancel()
            said.cancel()
            self.open_calls.discard(call)
        writer.close()


@asynccontextmanager
async def serve_paced_model() -> AsyncIterator[PacedModel]:
    """A paced model on a free port."""
    model = PacedModel()
    server = await asyncio.start_server(model.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    model.url = f"http://{host}:{port}/v1"
    try:
        yield model
    finally:
        server.close()
        for call in model.open_calls:
            call.ended.set()
        await server.wait_closed()
