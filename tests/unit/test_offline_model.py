"""The offline model, driven by the `openai` client as a real one is."""

from typing import Any

import httpx2
import openai
import pytest

from threadmark.state.entries.message import Message, ToolCall
from threadmark.workers.agents.tools import Effect, tool
from threadmark.workers.models import OFFLINE_MODEL, ModelRequest, OfflineTransport, create_model
from threadmark.workers.models.usage import reply_token_count, request_token_count
from threadmark.workers.tokens import count_tokens


@tool(effect=Effect.PURE)
async def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


def a_request(*messages: Message, **changes: Any) -> ModelRequest:
    return ModelRequest(messages=messages, idempotency_key="k", tools=(add.definition,), **changes)


async def test_a_reply_streams_word_by_word() -> None:
    """Deltas arrive in order, the cuts rebuild them, and the reply names the model that gave it."""
    model = create_model()
    deltas: list[str] = []

    reply = await model.reply(a_request(Message("1", "human", "héllo 😀 you")), deltas.append)

    assert reply.text == "You said: héllo 😀 you\n(1 message in view)"
    assert deltas[:5] == ["You ", "said: ", "héllo ", "😀 ", "you\n"]
    assert reply.cuts == tuple(len(each) for each in deltas)
    assert (reply.model, reply.finish_reason) == (OFFLINE_MODEL, "stop")
    assert model.offline
    await model.close()


async def test_a_script_is_played_through_the_client() -> None:
    """Calls come back parsed, their results go in, and the last reply has them."""
    model = create_model()
    messages = [Message("1", "human", 'parallel add {"a": 1, "b": 2}\nparallel add {"a": 9}')]

    called = await model.reply(a_request(*messages), lambda _: None)
    messages.append(Message("2", "ai", called.text, tool_calls=called.tool_calls))
    messages.extend(Message(call.id, "tool", "3", tool_call_id=call.id) for call in called.tool_calls)
    done = await model.reply(a_request(*messages), lambda _: None)

    assert [(call.name, call.arguments) for call in called.tool_calls] == [("add", {"a": 1, "b": 2}), ("add", {"a": 9})]
    assert (called.text, called.cuts, called.invalid_calls) == ("", (), {})
    assert called.finish_reason == "tool_calls"
    assert done.text == "Done.\n3\n3"
    await model.close()


async def test_usage_is_counted_by_the_stated_rule() -> None:
    """Input and output are exact counts: the rule of docs/offline-model.md, worked out by hand."""
    model = create_model()

    reply = await model.reply(a_request(Message("1", "human", "hi"), instructions="Be brief."), lambda _: None)

    definition = (
        '{"type":"function","function":{"name":"add","description":"Add two numbers.","parameters":'
        '{"additionalProperties":false,"properties":{"a":{"type":"integer"},"b":{"default":0,"type":"integer"}},'
        '"required":["a"],"type":"object"}}}'
    )
    texts = ["system", "Be brief.", "user", "hi", definition]
    assert reply.usage.input_tokens == 3 + 2 * 3 + sum(map(count_tokens, texts))
    assert reply.usage.output_tokens == count_tokens(reply.text)
    await model.close()


def test_names_and_calls_are_counted() -> None:
    """A name costs one more than its tokens; a call costs its name and arguments; other parts cost nothing."""
    call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
    messages: list[dict[str, Any]] = [
        {
            "role": "user",
            "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {}}],
            "name": "x",
        },
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]

    texts = ["user", "hi", "x", "assistant", "add", '{"a":1}']
    assert request_token_count(messages) == 3 + 2 * 3 + 1 + sum(map(count_tokens, texts))
    assert reply_token_count("hi", [("add", '{"a":1}')]) == sum(map(count_tokens, ["hi", "add", '{"a":1}']))


async def test_the_offline_model_serves_agents_of_any_model() -> None:
    """An agent that names a model runs offline too, and the reply tells who answered."""
    model = create_model()

    reply = await model.reply(a_request(Message("1", "human", "hi"), model="gpt-5.4"), lambda _: None)

    assert reply.model == OFFLINE_MODEL
    await model.close()


def a_client() -> openai.AsyncOpenAI:
    http_client = httpx2.AsyncClient(transport=OfflineTransport(), trust_env=False)
    return openai.AsyncOpenAI(api_key="x", base_url="http://offline.invalid/v1", http_client=http_client, max_retries=0)


async def test_a_whole_reply_equals_the_streamed_one() -> None:
    """Without `stream` the same request gets the same message, calls and usage in one piece."""
    client = a_client()
    messages: Any = [{"role": "user", "content": 'call add {"a": 1}'}]

    whole = await client.chat.completions.create(model="offline", messages=messages, tools=[add.definition])  # type: ignore[list-item]
    stream = client.chat.completions.stream(model="offline", messages=messages, tools=[add.definition])  # type: ignore[list-item]
    async with stream as events:
        streamed = await events.get_final_completion()

    (call,), (streamed_call,) = whole.choices[0].message.tool_calls or [], streamed.choices[0].message.tool_calls or []
    function = {"name": "add", "arguments": '{"a":1}'}
    assert call.model_dump() == {"id": streamed_call.id, "type": "function", "function": function}
    assert streamed_call.model_dump()["function"] | function == streamed_call.model_dump()["function"]
    assert whole.choices[0].finish_reason == streamed.choices[0].finish_reason == "tool_calls"
    assert whole.choices[0].message.content is None
    assert whole.usage is not None
    assert whole.id.startswith("chatcmpl-")
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    await client.close()


async def test_usage_is_streamed_only_where_it_is_asked_for() -> None:
    """With `include_usage` the last chunk has no choice and the numbers; without it no chunk has the field."""
    client = a_client()
    messages: Any = [{"role": "user", "content": "hi"}]

    asked = [
        chunk
        async for chunk in await client.chat.completions.create(
            model="offline", messages=messages, stream=True, stream_options={"include_usage": True}
        )
    ]
    unasked = [
        chunk async for chunk in await client.chat.completions.create(model="offline", messages=messages, stream=True)
    ]

    assert [chunk.usage is not None for chunk in asked] == [False] * (len(asked) - 1) + [True]
    assert asked[-1].choices == []
    assert all("usage" not in chunk.model_fields_set for chunk in unasked)
    assert {chunk.id for chunk in asked} == {asked[0].id}
    assert asked[0].choices[0].delta.role == "assistant"
    assert asked[-2].choices[0].finish_reason == "stop"
    await client.close()


async def test_the_offline_model_is_listed_and_labelled() -> None:
    """`/models` has one model; its name, owner, fingerprint and header say that it is no language model."""
    client = a_client()

    listed = await client.models.list()
    one = await client.models.retrieve("offline")
    raw = await client.chat.completions.with_raw_response.create(
        model="offline", messages=[{"role": "user", "content": "hi"}]
    )

    assert [each.id for each in listed.data] == ["offline"]
    assert one.owned_by == "threadmark-offline"
    assert raw.headers["x-threadmark-model"] == "offline"
    assert raw.parse().system_fingerprint == "threadmark-offline"
    await client.close()


CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"model": "gpt-5.4", "messages": [{"role": "user", "content": "x"}]}, 404, "`gpt-5.4` does not exist"),
        ({"model": "offline", "messages": []}, 400, "must not be empty"),
        ({"model": "offline", "messages": [{"role": "user", "content": "x"}], "n": 2}, 400, "n must be 1"),
        ({"model": "offline"}, 400, "messages"),
        ({"model": "offline", "messages": [{"role": "wizard"}]}, 400, "wizard"),
        ({"model": "offline", "messages": [{"role": "assistant", "tool_calls": [CALL]}]}, 400, "'c1' is not followed"),
        ({"model": "offline", "messages": [{"role": "tool", "tool_call_id": "c9"}]}, 400, "answers 'c9'"),
    ],
)
async def test_requests_that_a_real_model_refuses_are_refused(body: dict[str, Any], status: int, sentence: str) -> None:
    """A transcript that would break a thread on a real server breaks the test that sent it."""
    async with httpx2.AsyncClient(transport=OfflineTransport(), trust_env=False) as client:
        response = await client.post("http://offline.invalid/v1/chat/completions", json=body)

    assert response.status_code == status
    error = response.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert sentence in error["message"]


async def test_no_json_and_no_route_are_refused() -> None:
    """Errors have the protocol's shape on every path."""
    async with httpx2.AsyncClient(transport=OfflineTransport(), trust_env=False) as client:
        no_json = await client.post("http://offline.invalid/v1/chat/completions", content=b"{")
        no_route = await client.post("http://offline.invalid/v1/embeddings", json={})

    assert (no_json.status_code, no_route.status_code) == (400, 404)
    assert set(no_route.json()["error"]) == {"message", "type", "param", "code"}


async def test_an_invalid_transcript_is_not_even_sent() -> None:
    """The client checks calls and results itself, before the server can refuse them."""
    model = create_model()
    broken = Message("1", "ai", "", tool_calls=(ToolCall("c1", "add", {}),))

    with pytest.raises(Exception, match="'c1' is not followed by its result"):
        await model.reply(a_request(broken), lambda _: None)

    await model.close()
