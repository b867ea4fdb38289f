"""A model's server that fails in every way that the tests name: a transport that answers with given bytes."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import httpx2

from threadmark.state.entries.message import Message
from threadmark.workers.models import ModelReply, ModelRequest
from threadmark.workers.models.client import ChatModel, bound_response

__all__ = [
    "REQUEST",
    "FaultyTransport",
    "call",
    "calls",
    "chunk",
    "error_body",
    "event",
    "model_behind",
    "reply_to",
    "stream_of",
]

REQUEST = ModelRequest(messages=(Message("1", "human", "hi"),), idempotency_key="key-1")


class FaultyTransport(httpx2.AsyncBaseTransport):
    """Answers each request with the same status, headers and parts; an exception among the parts is raised there.

    The part None never comes: the stream hangs until it is cancelled.
    """

    def __init__(
        self,
        parts: Iterable[bytes | Exception | None],
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.parts = list(parts)
        self.status = status
        self.headers = {"content-type": "text/event-stream", **(headers or {})}
        self.requests: list[httpx2.Request] = []
        self.closed_count = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        if self.parts and isinstance(self.parts[0], Exception):
            raise self.parts[0]
        return httpx2.Response(self.status, headers=self.headers, stream=_Parts(self), request=request)


class _Parts(httpx2.AsyncByteStream):
    def __init__(self, transport: FaultyTransport) -> None:
        self._transport = transport

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._transport.parts:
            if part is None:
                await asyncio.Event().wait()
            elif isinstance(part, Exception):
                raise part
            else:
                yield part

    async def aclose(self) -> None:
        self._transport.closed_count += 1


def model_behind(transport: httpx2.AsyncBaseTransport, *, reply_timeout_s: float = 10.0) -> ChatModel:
    """A real client in front of that transport; new call ids are `new_1`, `new_2`, …"""
    numbers = iter(range(1, 1000))
    http_client = httpx2.AsyncClient(
        transport=transport, trust_env=False, event_hooks={"response": [bound_response]}, timeout=5
    )
    return ChatModel(
        name="some-model",
        api_key="sk-secret-0123456789",
        base_url="http://model.invalid/v1",
        http_client=http_client,
        reply_timeout_s=reply_timeout_s,
        new_call_id=lambda: f"new_{next(numbers)}",
    )


def chunk(delta: Mapping[str, Any] | None = None, finish_reason: str | None = None, **more: Any) -> bytes:
    """One chunk of a streamed completion, as an event."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish_reason}
    head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "some-model-2"}
    return event(json.dumps({**head, "choices": [choice], **more}, ensure_ascii=False))


def event(data: str) -> bytes:
    """One server-sent event."""
    return f"data: {data}\n\n".encode()


def stream_of(*texts: str) -> list[bytes]:
    """A whole stream that says these texts and reports no usage."""
    return [*(chunk({"content": each}) for each in texts), chunk({}, "stop"), event("[DONE]")]


async def reply_to(
    parts: Iterable[bytes | Exception | None],
    request: ModelRequest = REQUEST,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
    reply_timeout_s: float = 10,
) -> tuple[ModelReply, list[str]]:
    """The reply and its deltas; whatever happens, one request is made and its response is closed."""
    transport = FaultyTransport(parts, status=status, headers=headers)
    model = model_behind(transport, reply_timeout_s=reply_timeout_s)
    deltas: list[str] = []
    try:
        return await model.reply(request, deltas.append), deltas
    finally:
        await model.close()
        assert len(transport.requests) == 1
        assert transport.closed_count >= (0 if isinstance(transport.parts[0], Exception) else 1)


def error_body(message: str, code: str | None = None, kind: str | None = None) -> list[bytes]:
    """An error as the protocol spells it."""
    return [json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}}).encode()]


def calls(*written: dict[str, Any]) -> list[bytes]:
    """A stream with these call deltas."""
    return [*(chunk({"tool_calls": [each]}) for each in written), chunk({}, "tool_calls")]


def call(index: int | None, call_id: str | None, name: str = "f", arguments: str = "{}") -> dict[str, Any]:
    """A delta that opens a call."""
    return {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
