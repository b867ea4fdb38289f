"""A model's server that fails: each failure ends as unavailable or as refused, and never otherwise."""

import json
import traceback
from typing import Any

import httpx2
import pytest

from tests.support.faulty_model import (
    REQUEST,
    FaultyTransport,
    call,
    calls,
    chunk,
    error_body,
    event,
    model_behind,
    reply_to,
    stream_of,
)
from threadmark.state.entries.message import ToolCall
from threadmark.workers.models import ModelRefused, ModelRequest, ModelUnavailable, ReplyTooLarge, client
from threadmark.workers.models.assembly import REPLY_SIZE_MAX, TOOL_CALL_COUNT_MAX
from threadmark.workers.models.faults import retry_after_s


async def test_a_request_carries_what_it_must() -> None:
    """Key, idempotency key, tools, usage and bound go out in one request; the client never retries by itself."""
    transport = FaultyTransport(stream_of("ok"))
    model = model_behind(transport)
    tool: dict[str, Any] = {"type": "function", "function": {"name": "f", "parameters": {}}}
    request = ModelRequest(
        messages=REQUEST.messages, idempotency_key="key-1", tools=(tool,), model="mine", reply_token_count_max=50
    )

    await model.reply(request, lambda _: None)

    (sent,) = transport.requests
    assert sent.headers["idempotency-key"] == "key-1"
    assert sent.headers["authorization"] == "Bearer sk-secret-0123456789"
    assert json.loads(sent.content) == {
        "model": "mine",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [tool],
        "max_completion_tokens": 50,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    await model.close()


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_statuses_that_say_not_now(status: int) -> None:
    """Worth another attempt, after the time that the server asks for."""
    with pytest.raises(ModelUnavailable, match=rf"answered {status} \(busy\)") as caught:
        await reply_to(error_body("Later", "busy"), status=status, headers={"retry-after": "7"})

    assert caught.value.retry_after_s == 7


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
async def test_statuses_that_say_never(status: int) -> None:
    """The same request would fail again."""
    with pytest.raises(ModelRefused, match=rf"refused the request with {status} \(bad\)"):
        await reply_to(error_body("No", "bad"), status=status)


async def test_the_reason_of_a_refusal_contains_no_secrets() -> None:
    """It says what is wrong with the request, without the keys that a server repeats, in message and traceback."""
    too_long = error_body("Key sk-secret-0123456789 or sk-sec**99: too long" + "x" * 999, "long")
    bad_key = error_body("Incorrect API key: sk-sec**6789", "invalid_api_key")
    with pytest.raises(ModelRefused) as explained:
        await reply_to(too_long, status=400)
    with pytest.raises(ModelRefused) as unexplained:
        await reply_to(bad_key, status=401)

    assert str(explained.value).startswith(
        "the model's server refused the request with 400 (long): Key [hidden] or [hidden]: too long"
    )
    assert len(str(explained.value)) < 400
    assert str(unexplained.value) == "the model's server refused the request with 401 (invalid_api_key)"
    for error in (explained.value, unexplained.value):
        assert "sk-sec" not in "".join(traceback.format_exception(error))


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({}, None),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "-4"}, 0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT", "date": "Wed, 21 Oct 2026 07:28:30 GMT"}, 0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT"}, None),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
    ],
)
def test_the_wait_that_a_server_asks_for(headers: dict[str, str], wait_s: float | None) -> None:
    """Milliseconds, seconds, or a date against the server's own clock; nonsense counts as nothing asked."""
    assert retry_after_s(httpx2.Headers(headers)) == wait_s


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (httpx2.ConnectError("refused"), "the connection to the model's server failed"),
        (httpx2.ConnectTimeout("slow"), "did not answer in time"),
        (httpx2.ReadTimeout("slow"), "did not answer in time"),
        (httpx2.RemoteProtocolError("bad"), "the connection to the model's server failed"),
    ],
)
@pytest.mark.parametrize("before", [[], [chunk({"content": "a"})]])
async def test_connections_that_fail(before: list[bytes], error: Exception, sentence: str) -> None:
    """Before the first byte and in mid-stream alike, another attempt may succeed."""
    with pytest.raises(ModelUnavailable, match=sentence):
        await reply_to([*before, error])


async def test_a_reply_that_takes_too_long_is_given_up() -> None:
    """Also one that keeps the connection alive: the whole reply has a bound."""
    with pytest.raises(ModelUnavailable, match=r"took longer than 0\.05 s"):
        await reply_to([chunk({"content": "a"}), None], reply_timeout_s=0.05)


FIRST_CALL = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}
USAGE = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
WHOLE = b"".join(
    [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Grüße 😀"}),
        chunk({"tool_calls": [FIRST_CALL]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"ä":'}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]}),
        chunk({}, "tool_calls"),
        event(json.dumps({"id": "x", "model": "m", "choices": [], "usage": USAGE})),
        event("[DONE]"),
    ]
)


async def test_a_stream_cut_at_any_byte_is_whole_or_unavailable() -> None:
    """Wherever the connection ends, cleanly or not, it is the whole reply or another attempt, never a part of one."""
    transport = FaultyTransport([])
    model = model_behind(transport)
    finished_at = WHOLE.index(b'"finish_reason": "tool_calls"')
    whole_count = 0
    for length in range(len(WHOLE) + 1):
        for end in (list[Exception](), [httpx2.ReadError("reset")]):
            transport.parts = [WHOLE[:length], *end]
            try:
                reply = await model.reply(REQUEST, lambda _: None)
            except ModelUnavailable:
                continue
            whole_count += 1
            assert length > finished_at
            assert (reply.text, reply.finish_reason) == ("Grüße 😀", "tool_calls")
            assert reply.tool_calls == (ToolCall("c1", "f", {"ä": 1}),)
    assert whole_count > 0
    await model.close()


@pytest.mark.parametrize("body", [b"<html>busy</html>", b"", b'{"ok": true}', b"data: {\n\n", b"data: \xff\n\n"])
async def test_a_200_that_is_no_stream_is_unavailable(body: bytes) -> None:
    """A proxy's page in place of a reply is a fault of the moment."""
    with pytest.raises(ModelUnavailable, match="cut short"):
        await reply_to([body])


@pytest.mark.parametrize("data", ["5", "[]", '"x"', "null"])
async def test_a_stream_of_something_else_is_refused(data: str) -> None:
    """A server that does not speak the protocol will not learn it by asking again."""
    with pytest.raises(ModelRefused, match="no chat completion"):
        await reply_to([event(data)])


@pytest.mark.parametrize(
    ("kind", "error"),
    [("server_error", ModelUnavailable), (None, ModelUnavailable), ("invalid_request_error", ModelRefused)],
)
async def test_an_error_in_mid_stream(kind: str | None, error: type[Exception]) -> None:
    """A server may fail behind a status of 200; its kind tells whether to ask again."""
    with pytest.raises(error):
        await reply_to([chunk({"content": "a"}), event(error_body("Oops", None, kind)[0].decode())])


async def test_a_reply_of_ten_mebibytes_is_refused() -> None:
    """In small pieces, in one piece, or as arguments: the bound ends it, and asking again is pointless."""
    piece = chunk({"content": "é" * 4096})
    for parts in (
        [piece] * 1280 + [chunk({}, "stop")],
        stream_of("x" * 10 * 1024 * 1024),
        calls(call(0, "a", "f", "x" * 10 * 1024 * 1024)),
    ):
        with pytest.raises(ReplyTooLarge, match=f"more than {REPLY_SIZE_MAX:,} bytes"):
            await reply_to(parts)


async def test_a_reply_at_the_bound_is_kept() -> None:
    """One byte decides."""
    reply, _ = await reply_to(stream_of("x" * (REPLY_SIZE_MAX - 1), "y"))
    with pytest.raises(ReplyTooLarge):
        await reply_to(stream_of("x" * REPLY_SIZE_MAX, "y"))

    assert len(reply.text) == REPLY_SIZE_MAX


async def test_too_many_calls_are_refused() -> None:
    """A flood of calls ends the reply."""
    with pytest.raises(ReplyTooLarge, match=f"more than {TOOL_CALL_COUNT_MAX} tool calls"):
        await reply_to(calls(*(call(index, f"c{index}") for index in range(TOOL_CALL_COUNT_MAX + 1))))


@pytest.mark.parametrize("status", [200, 500])
async def test_a_line_without_an_end_is_given_up(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes on the wire have a bound too, in a reply and in an error."""
    monkeypatch.setattr(client, "WIRE_SIZE_MAX", 100_000)

    with pytest.raises(ReplyTooLarge, match="more than 100,000 bytes on the wire"):
        await reply_to([b"data: ", *([b"x" * 1000] * 200)], status=status)


async def test_an_error_of_the_listener_is_not_the_model_s() -> None:
    """What `on_delta` raises comes out as it is, and the response is closed."""
    transport = FaultyTransport(stream_of("a"))
    model = model_behind(transport)

    def broken(_: str) -> None:
        raise ValueError("listener")

    with pytest.raises(ValueError, match="listener"):
        await model.reply(REQUEST, broken)

    assert transport.closed_count >= 1
    await model.close()
