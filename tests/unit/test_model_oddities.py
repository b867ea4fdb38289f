"""Replies that are odd: what can be mended is mended, what cannot is marked, and the thread goes on."""

import json
from typing import Any

import msgspec
import pytest

from tests.support.faulty_model import (
    REQUEST,
    FaultyTransport,
    call,
    calls,
    chunk,
    event,
    model_behind,
    reply_to,
    stream_of,
)
from threadmark.state.entries.message import Message, ToolCall, Usage
from threadmark.workers.models import ModelError, ModelRefused, ModelReply, ModelRequest
from threadmark.workers.models.usage import reply_token_count, request_token_count

USAGE = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}


async def test_chunks_with_parts_left_out_are_read() -> None:
    """Servers leave out the delta, the choices, the index or the model."""
    parts = [
        event('{"choices": [{"delta": {"content": "a"}}]}'),
        event('{"choices": null, "model": "m"}'),
        event('{"choices": [{"index": 0, "finish_reason": "stop"}]}'),
        event('{"choices": [{"index": 1, "delta": {"content": "other"}}]}'),
        event("[DONE]"),
    ]

    reply, deltas = await reply_to(parts)

    assert (reply.text, reply.model, deltas) == ("a", "m", ["a"])


async def test_usage_that_is_not_reported_is_counted() -> None:
    """A budget of tokens holds also for servers that report none."""
    reply, _ = await reply_to(stream_of("Hello ", "there"))

    assert reply.usage == Usage(
        input_tokens=request_token_count([{"role": "user", "content": "hi"}]),
        output_tokens=reply_token_count("Hello there", []),
    )


async def test_usage_that_is_reported_is_kept() -> None:
    """The server's own numbers are what is paid."""
    reply, _ = await reply_to([chunk({"content": "a"}), chunk({}, "stop", usage=USAGE)])

    assert reply.usage == Usage(input_tokens=5, output_tokens=7)


async def test_a_withheld_reply_is_refused_and_a_declined_one_is_text() -> None:
    """Nothing but a filter's mark is no reply; a model's own words of refusal are one."""
    with pytest.raises(ModelRefused, match="withheld"):
        await reply_to([chunk({}, "content_filter")])
    reply, _ = await reply_to([chunk({"refusal": "I will "}), chunk({"refusal": "not."}), chunk({}, "stop")])

    assert reply.text == "I will not."


async def test_ids_that_are_empty_or_taken_are_replaced() -> None:
    """Empty ids, an id twice in a reply, and an id from an earlier turn would each break a later turn."""
    earlier = (
        Message("1", "human", "hi"),
        Message("2", "ai", "", tool_calls=(ToolCall("old", "f", {}),)),
        Message("3", "tool", "r", tool_call_id="old"),
    )
    parts = calls(call(0, "a"), call(1, "a"), call(2, ""), call(3, None), call(4, "old"), call(5, "b"))

    reply, _ = await reply_to(parts, ModelRequest(messages=earlier, idempotency_key="k"))

    assert [each.id for each in reply.tool_calls] == ["a", "new_1", "new_2", "new_3", "new_4", "b"]
    assert reply.invalid_calls == {}


async def test_ids_that_no_server_takes_back_are_replaced() -> None:
    """Blanks, control signs, other scripts, and more than 128 signs."""
    reply, _ = await reply_to(
        calls(*(call(index, each) for index, each in enumerate(("a b", "a\x00", "é", "x" * 129))))
    )

    assert [each.id for each in reply.tool_calls] == ["new_1", "new_2", "new_3", "new_4"]


async def test_arguments_may_come_as_an_object() -> None:
    """Some servers send the object and not its text."""
    reply, _ = await reply_to(calls({"index": 0, "id": "a", "function": {"name": "f", "arguments": {"n": [1]}}}))

    assert reply.tool_calls == (ToolCall("a", "f", {"n": [1]}),)


PLACES: list[tuple[str | int, ...]] = [
    ("model",),
    ("usage",),
    ("usage", "prompt_tokens"),
    ("choices",),
    ("choices", 0),
    ("choices", 0, "index"),
    ("choices", 0, "finish_reason"),
    ("choices", 0, "delta"),
    ("choices", 0, "delta", "content"),
    ("choices", 0, "delta", "tool_calls"),
    ("choices", 0, "delta", "tool_calls", 0),
    ("choices", 0, "delta", "tool_calls", 0, "index"),
    ("choices", 0, "delta", "tool_calls", 0, "id"),
    ("choices", 0, "delta", "tool_calls", 0, "function"),
    ("choices", 0, "delta", "tool_calls", 0, "function", "name"),
    ("choices", 0, "delta", "tool_calls", 0, "function", "arguments"),
]
ODD: list[Any] = [None, True, -1, 2.5, 10**30, "", "text", "\ud800", [], [1], [[]], {}, {"a": 1}, {"index": "x"}]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join(map(str, place)))
async def test_a_wrong_type_anywhere_is_mended_or_refused(place: tuple[str | int, ...]) -> None:
    """Whatever stands in a chunk, the reply can be journaled and read back, or the call fails as a model call fails."""
    transport = FaultyTransport([])
    model = model_behind(transport)
    for odd in ODD:
        body: Any = json.loads(chunk({"content": "a", "tool_calls": [call(0, "c")]}, usage=USAGE)[len("data: ") :])
        inner = body
        for step in place[:-1]:
            inner = inner[step]
        inner[place[-1]] = odd
        transport.parts = [event(json.dumps(body)), chunk({}, "stop")]
        try:
            reply = await model.reply(REQUEST, lambda _: None)
        except ModelError:
            continue
        assert msgspec.json.decode(msgspec.json.encode(reply), type=ModelReply) == reply
    await model.close()


async def test_calls_under_one_index_are_kept_apart() -> None:
    """Servers that send whole calls give them all the index 0, or none."""
    reply, _ = await reply_to(
        calls(call(0, "a", "f", '{"n":1}'), call(0, "b", "g", '{"n":2}'), call(None, "c", "h", '{"n":3}'))
    )

    assert [(each.id, each.name, each.arguments["n"]) for each in reply.tool_calls] == [
        ("a", "f", 1),
        ("b", "g", 2),
        ("c", "h", 3),
    ]


async def test_an_id_repeated_in_each_delta_is_one_call() -> None:
    """Some servers repeat id and name with every piece of the arguments."""
    reply, _ = await reply_to(calls(call(0, "a", "f", '{"n"'), call(0, "a", "f", ":1}")))

    assert reply.tool_calls == (ToolCall("a", "f", {"n": 1}),)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ('{"n": ', "the arguments are no valid JSON: Expecting value at character 6; they were '{\"n\": '"),
        ("[1]", "the arguments are a JSON array, not an object; they were '[1]'"),
        ('{"n":1,"n":2}', "the key 'n' is given twice"),
        ('{"n":NaN}', "NaN is no JSON"),
        ("x" * 5000, "…'"),
    ],
)
async def test_arguments_that_cannot_be_used_are_marked(arguments: str, reason: str) -> None:
    """The call stays in the reply, with a reason in place of arguments: the model sees it, the run goes on."""
    reply, _ = await reply_to(calls(call(0, "a", "f", arguments), call(1, "b")))

    assert reply.tool_calls == (ToolCall("a", "f", {}), ToolCall("b", "f", {}))
    assert list(reply.invalid_calls) == ["a"]
    assert reason in reply.invalid_calls["a"]
    assert len(reply.invalid_calls["a"]) < 400


@pytest.mark.parametrize(("name", "kept"), [("", "unnamed"), ("functions.f", "functions_f"), ("x" * 99, "x" * 64)])
async def test_names_that_no_server_takes_back_are_marked(name: str, kept: str) -> None:
    """A name is sent back in every later turn; one that the server refuses would end the thread."""
    reply, _ = await reply_to(calls(call(0, "a", name)))

    assert reply.tool_calls == (ToolCall("a", kept, {}),)
    assert reply.invalid_calls["a"].endswith("is no name of a tool")


async def test_a_code_point_cut_in_two_is_joined() -> None:
    """Halves that come in two deltas are one character; a half without its other half is replaced."""
    halves = [
        event(json.dumps({"choices": [{"delta": {"content": each}}]}))
        for each in ("a\ud83d", "\ude00b", "\ude00", "\ud83d")
    ]

    reply, deltas = await reply_to([*halves, chunk({}, "stop")])

    assert reply.text == "a😀b\ufffd\ufffd"
    assert deltas == ["a", "😀b", "\ufffd", "\ufffd"]
    assert reply.cuts == (1, 2, 1, 1)


@pytest.mark.parametrize(
    "usage",
    [
        {**USAGE, "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 6}},
        {**USAGE, "prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 1},
        {**USAGE, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 1},
        {**USAGE, "queue_time": 0.1, "prompt_time": 0.2, "total_time": 0.3},
    ],
    ids=["details", "hits and misses", "read and created", "times"],
)
async def test_cached_and_hidden_tokens_count_once(usage: dict[str, Any]) -> None:
    """Servers say in four shapes what of the totals was cached or thought; the totals hold it already (G20)."""
    reply, _ = await reply_to([chunk({"content": "a"}), chunk({}, "stop", usage=usage)])

    assert reply.usage == Usage(input_tokens=5, output_tokens=7)


async def test_a_usage_that_comes_with_every_chunk_is_not_added_up() -> None:
    """Some servers tell the totals so far each time: the last ones are the reply's (G20)."""
    so_far = [{"prompt_tokens": 5, "completion_tokens": count, "total_tokens": 5 + count} for count in (1, 3, 7)]
    reply, _ = await reply_to(
        [*(chunk({"content": "a"}, usage=each) for each in so_far), chunk({}, "stop", usage=so_far[-1])]
    )

    assert reply.usage == Usage(input_tokens=5, output_tokens=7)
