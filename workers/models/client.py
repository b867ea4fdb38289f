"""A model behind the chat completions protocol, reached with the `openai` client.

One call is one attempt: the client's own retries are off, since attempts are counted, recorded and spaced by the turn.
"""

import asyncio
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from functools import partial
from typing import Any, cast

import httpx2
import openai
from openai.types.chat import ChatCompletionChunk

from threadmark.state.entries.message import Usage
from threadmark.workers.models.assembly import Assembly
from threadmark.workers.models.errors import ModelUnavailable, ReplyTooLarge
from threadmark.workers.models.exchange import ModelReply, ModelRequest
from threadmark.workers.models.faults import classify
from threadmark.workers.models.prompt import to_openai
from threadmark.workers.models.usage import reply_token_count, request_token_count
from threadmark.workers.pools import COUNTING

__all__ = [
    "CONNECT_TIMEOUT_S",
    "REPLY_TIMEOUT_S",
    "SILENCE_TIMEOUT_S",
    "WIRE_SIZE_MAX",
    "ChatModel",
    "bound_response",
]

CONNECT_TIMEOUT_S = 5.0
SILENCE_TIMEOUT_S = 120.0  #: between two reads of a reply, and before the first
REPLY_TIMEOUT_S = 600.0  #: for a whole reply
WIRE_SIZE_MAX = 128 * 1024 * 1024  #: bytes of one response as it is sent, framing and all


def _new_call_id() -> str:
    return f"call_{uuid.uuid4().hex}"


class ChatModel:
    """A model that gives a reply to a transcript.

    `offline` says that the built-in model answers: it serves every agent, whatever model the agent names.
    """

    def __init__(
        self,
        *,
        name: str,
        api_key: str,
        base_url: str | None,
        http_client: httpx2.AsyncClient,
        offline: bool = False,
        reply_timeout_s: float = REPLY_TIMEOUT_S,
        new_call_id: Callable[[], str] = _new_call_id,
    ) -> None:
        self.name = name
        self.offline = offline
        self._reply_timeout_s = reply_timeout_s
        self._new_call_id = new_call_id
        self._client = openai.AsyncOpenAI(
            api_key=api_key,
            base_url=base_url,
            http_client=http_client,
            max_retries=0,
            timeout=http_client.timeout,
        )

    def name_for(self, wanted: str | None) -> str:
        """The name of the model that serves an agent which wants this one."""
        return self.name if self.offline else wanted or self.name

    async def reply(self, request: ModelRequest, on_delta: Callable[[str], None]) -> ModelReply:
        """Ask for one reply; each piece of its text goes to `on_delta` as it comes.

        Raises PromptInvalid before anything is sent, ModelUnavailable where another attempt may succeed, ModelRefused
        where it cannot. A failed attempt leaves nothing behind but the deltas it streamed.
        """
        messages = to_openai(request.instructions, request.messages, request.recalled)
        assembly = Assembly()
        try:
            async with asyncio.timeout(self._reply_timeout_s):
                await self._stream(request, messages, assembly, on_delta)
        except TimeoutError:
            raise ModelUnavailable(f"the model's reply took longer than {self._reply_timeout_s:g} s") from None
        except openai.OpenAIError as error:
            # Not chained: the client's own message may repeat a part of the key, and a traceback would print it.
            raise classify(error, self._client.api_key) from None
        calls, invalid = assembly.tool_calls(
            (call.id for message in request.messages for call in message.tool_calls), self._new_call_id
        )
        usage = assembly.usage
        if usage is None:
            usage = await COUNTING.run(partial(_counted, request, messages, assembly))
        return ModelReply(
            text=assembly.text,
            tool_calls=calls,
            invalid_calls=invalid,
            usage=usage,
            finish_reason=assembly.finish_reason or "stop",
            model=assembly.model or self.name_for(request.model),
            cuts=assembly.cuts,
        )

    async def close(self) -> None:
        """Give the connections back."""
        await self._client.close()

    async def _stream(
        self,
        request: ModelRequest,
        messages: list[dict[str, Any]],
        assembly: Assembly,
        on_delta: Callable[[str], None],
    ) -> None:
        # In the extra body the messages go out as they are; as arguments, the client walks through every one of them
        # again and holds the event loop for it, a fifth of a second for a thousand.
        written: dict[str, Any] = {"messages": messages}
        if request.tools:
            written["tools"] = list(request.tools)
        stream = await self._client.chat.completions.create(
            model=self.name_for(request.model),
            messages=[],
            max_completion_tokens=request.reply_token_count_max or openai.omit,
            stream=True,
            stream_options={"include_usage": True},
            extra_headers={"Idempotency-Key": request.idempotency_key},
            extra_body=written,
        )
        async with stream, aclosing(_chunks(stream)) as chunks:
            async for chunk in chunks:
                if delta := assembly.feed(chunk):
                    on_delta(delta)
        if rest := assembly.end():
            on_delta(rest)


async def _chunks(stream: openai.AsyncStream[ChatCompletionChunk]) -> AsyncGenerator[ChatCompletionChunk]:
    try:
        async for chunk in stream:
            yield chunk
    except ValueError:
        # No JSON, or no UTF-8: the connection ended inside a line, or inside a character of one.
        raise ModelUnavailable("the model's reply was cut short in the middle of a line") from None


def _counted(request: ModelRequest, messages: list[dict[str, Any]], assembly: Assembly) -> Usage:
    """The usage of a server that reports none: budgets need a number."""
    return Usage(
        input_tokens=request_token_count(messages, request.tools),
        output_tokens=reply_token_count(assembly.text, assembly.calls),
    )


async def bound_response(response: httpx2.Response) -> None:
    """End a response that does not end by itself: a line without an end would fill the memory before any other bound.

    A hook of the HTTP client, so that it holds behind a proxy too. Raises ReplyTooLarge while the response is read.
    """
    response.stream = _BoundedStream(cast("httpx2.AsyncByteStream", response.stream), WIRE_SIZE_MAX)


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, size_max: int) -> None:
        self._inner = inner
        self._size_max = size_max

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._inner:
            size += len(part)
            if size > self._size_max:
                raise ReplyTooLarge("bytes on the wire", self._size_max)
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()
