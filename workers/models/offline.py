"""The offline model's body: a transport that answers as a chat completions server does, without a socket.

The same `openai` client drives it that drives a real model. It says what it is: its model is named `offline`, its
owner and its fingerprint are `threadmark-offline`, and each response carries the header `x-threadmark-model: offline`.
"""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from typing import Any, Literal

import httpx2
import msgspec

from threadmark.workers.models.errors import PromptInvalid
from threadmark.workers.models.prompt import check_call_results
from threadmark.workers.models.script import PlannedReply, offline_reply, words
from threadmark.workers.models.usage import reply_token_count, request_token_count
from threadmark.workers.pools import COUNTING

__all__ = ["OFFLINE_MODEL", "OfflineTransport"]

OFFLINE_MODEL = "offline"
_OWNER = "threadmark-offline"
#: The same request has the same response, byte for byte, so the time of a response is none.
_CREATED = 0
_LABEL = {"x-threadmark-model": OFFLINE_MODEL}


class _Function(msgspec.Struct):
    name: str
    arguments: str = "{}"


class _Call(msgspec.Struct):
    id: str
    function: _Function


class _Tool(msgspec.Struct):
    function: _Function


class _Part(msgspec.Struct):
    type: str
    text: str = ""


class _Message(msgspec.Struct):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[_Part] | None = None
    name: str | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None


class _StreamOptions(msgspec.Struct):
    include_usage: bool = False


class _Body(msgspec.Struct):
    """What the offline model reads of a request; it ignores the rest, as a model ignores a temperature of another."""

    model: str
    messages: list[_Message]
    tools: list[_Tool] | None = None
    stream: bool = False
    stream_options: _StreamOptions | None = None
    n: int | None = None


class OfflineTransport(httpx2.AsyncBaseTransport):
    """Serves `/chat/completions` and `/models`; `word_delay_s` is the pause before each streamed word.

    `answer` makes the reply to a request; what it cannot answer it refuses with PromptInvalid.
    """

    def __init__(
        self, *, word_delay_s: float = 0.0, answer: Callable[[Mapping[str, Any]], PlannedReply] = offline_reply
    ) -> None:
        self._word_delay_s = word_delay_s
        self._answer = answer

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        route = (request.method, request.url.path.removeprefix("/v1"))
        match route:
            case ("GET", "/models"):
                return _json_response(200, {"object": "list", "data": [_MODEL]})
            case ("GET", "/models/offline"):
                return _json_response(200, _MODEL)
            case ("POST", "/chat/completions"):
                return await self._complete(await request.aread())
            case _:
                return _refusal(404, f"Invalid URL ({request.method} {request.url.path})", None)

    async def _complete(self, content: bytes) -> httpx2.Response:
        try:
            body = msgspec.json.decode(content)
            checked = msgspec.convert(body, _Body)
            check_call_results(body["messages"])
        except (msgspec.MsgspecError, ValueError, PromptInvalid) as error:
            return _refusal(400, str(error), None)
        if checked.model != OFFLINE_MODEL:
            return _refusal(404, f"The model `{checked.model}` does not exist: only `offline` does", "model_not_found")
        if not checked.messages or checked.n not in (None, 1):
            return _refusal(400, "messages must not be empty, and n must be 1", None)
        try:
            reply = self._answer(body)
        except PromptInvalid as error:
            return _refusal(400, str(error), None)
        # In a thread: the first count reads the vocabulary, and a long transcript takes its time.
        usage = await COUNTING.run(partial(_usage, body, reply))
        head = {"id": f"chatcmpl-{hashlib.sha256(content).hexdigest()[:24]}", "created": _CREATED}
        head |= {"model": OFFLINE_MODEL, "system_fingerprint": _OWNER}
        if not checked.stream:
            return _json_response(200, _completion(head, reply, usage))
        options = checked.stream_options or _StreamOptions()
        chunks = _chunks(head, reply, usage if options.include_usage else None)
        stream = _EventStream(chunks, self._word_delay_s)
        return httpx2.Response(200, headers={"content-type": "text/event-stream", **_LABEL}, stream=stream)


class _EventStream(httpx2.AsyncByteStream):
    """Chunks as server-sent events, one at a time."""

    def __init__(self, chunks: Iterator[dict[str, Any]], word_delay_s: float) -> None:
        self._chunks = chunks
        self._word_delay_s = word_delay_s

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            # Also without a pause: a long reply would hold the event loop from its first word to its last.
            await asyncio.sleep(self._word_delay_s)
            yield b"data: " + _json_bytes(chunk) + b"\n\n"
        yield b"data: [DONE]\n\n"


_MODEL = {"id": OFFLINE_MODEL, "object": "model", "created": _CREATED, "owned_by": _OWNER}


def _usage(body: Mapping[str, Any], reply: PlannedReply) -> dict[str, int]:
    prompt_count = request_token_count(body["messages"], body.get("tools") or ())
    reply_count = reply_token_count(reply.text, [(call.name, call.arguments) for call in reply.calls])
    return {
        "prompt_tokens": prompt_count,
        "completion_tokens": reply_count,
        "total_tokens": prompt_count + reply_count,
    }


def _completion(head: dict[str, Any], reply: PlannedReply, usage: dict[str, int]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in reply.calls
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish_reason}
    return {**head, "object": "chat.completion", "choices": [choice], "usage": usage}


def _chunks(head: dict[str, Any], reply: PlannedReply, usage: dict[str, int] | None) -> Iterator[dict[str, Any]]:
    # Where usage is asked for, each chunk has the field and only the last one, which has no choice, has the numbers.
    head = {**head, "object": "chat.completion.chunk"} | ({} if usage is None else {"usage": None})

    def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**head, "choices": [choice]}

    yield chunk({"role": "assistant", "content": None if reply.calls else ""})
    for word in words(reply.text):
        yield chunk({"content": word})
    for index, call in enumerate(reply.calls):
        opening = {"name": call.name, "arguments": ""}
        yield chunk({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": opening}]})
        for word in words(call.arguments):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": word}}]})
    yield chunk({}, reply.finish_reason)
    if usage is not None:
        yield {**head, "choices": [], "usage": usage}


def _refusal(status: int, message: str, code: str | None) -> httpx2.Response:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return _json_response(status, {"error": error})


def _json_response(status: int, value: dict[str, Any]) -> httpx2.Response:
    return httpx2.Response(status, headers={"content-type": "application/json", **_LABEL}, content=_json_bytes(value))


def _json_bytes(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
