"""Messages of the dialect: what is shown, what is taken, and what is refused with its place."""

from itertools import count
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage

from threadmark.app.http.body_errors import BodyRefused
from threadmark.app.wire.conversations.message_schema import (
    REMOVE_ALL,
    check_calls,
    message_to_wire,
    read_messages,
    read_revision,
)
from threadmark.state import Message, ToolCall, Usage

PATH = "$.input.messages"
CALL = {"id": "c1", "name": "add", "args": {"a": 1}, "type": "tool_call"}
USAGE = {"input_tokens": 1, "output_tokens": 1}
RESULT = {"role": "tool", "content": "2", "tool_call_id": "c1"}


def read(value: Any) -> tuple[Message, ...]:
    """The messages of an input, with ids that tell where they stood."""
    numbers = count(1)
    return read_messages(value, PATH, lambda: f"new-{next(numbers)}")


def refusal(value: Any) -> tuple[str, str]:
    """The place and the sentence of a refusal."""
    with pytest.raises(BodyRefused) as refused:
        read(value)
    return refused.value.path, str(refused.value)


@pytest.mark.parametrize(
    ("written", "kind"),
    [("user", "human"), ("human", "human"), ("assistant", "ai"), ("ai", "ai"), ("system", "system")],
)
@pytest.mark.parametrize("key", ["role", "type"])
def test_a_message_may_say_its_kind_in_either_way(key: str, written: str, kind: str) -> None:
    """`role` and `type`, with the words of both worlds."""
    (message,) = read([{key: written, "content": "hi"}])

    assert (message.type, message.content, message.id) == (kind, "hi", "new-1")


@pytest.mark.parametrize(
    "value", ["hi", {"role": "user", "content": "hi"}, ["hi"], [{"type": "human", "content": "hi"}]]
)
def test_one_message_or_a_text_alone_is_taken(value: Any) -> None:
    """As the reducer of the dialect does."""
    assert [(message.type, message.content) for message in read(value)] == [("human", "hi")]


def test_an_id_that_is_given_is_kept_and_the_others_get_one() -> None:
    """The server names what nobody named."""
    assert [message.id for message in read([{"role": "user", "content": "a", "id": "mine"}, "b"])] == ["mine", "new-1"]


@pytest.mark.parametrize("text", ["", "a\x00b", "\u2028", "👩‍👩‍👧", "é", "e\u0301"])
def test_text_keeps_its_code_points(text: str) -> None:
    """NUL, line separators, joined signs: nothing is cut, folded or normalised."""
    (message,) = read([{"role": "user", "content": text}])

    assert message_to_wire(message)["content"] == text


def test_what_an_sdk_writes_is_taken() -> None:
    """Messages of the dialect's own classes, with all the empty extras that they carry."""
    call = {"id": "c1", "name": "add", "args": {"a": 1}}
    written = [
        SystemMessage("s"),
        HumanMessage("h"),
        AIMessage("", tool_calls=[call]),
        ToolMessage("2", tool_call_id="c1"),
    ]

    messages = read([each.model_dump() for each in written])

    assert [message.type for message in messages] == ["system", "human", "ai", "tool"]
    assert messages[2].tool_calls == (ToolCall(id="c1", name="add", arguments={"a": 1}),)
    assert messages[3].tool_call_id == "c1"


def test_what_we_show_is_taken_back_unchanged() -> None:
    """A transcript may be sent back as it was read, usage included."""
    transcript = (
        Message(id="1", type="human", content=[{"type": "text", "text": "hi", "index": 0}], name="Ada"),
        Message(
            id="2",
            type="ai",
            content="",
            tool_calls=(ToolCall(id="c1", name="add", arguments={"a": [1, None]}),),
            usage=Usage(input_tokens=3, output_tokens=4),
        ),
        Message(id="3", type="tool", content="no", name="add", tool_call_id="c1", status="error"),
        Message(id="4", type="ai", content="sorry"),
    )

    assert read([message_to_wire(each) for each in transcript]) == transcript


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (7, PATH),
        (None, PATH),
        ([["user", "hi"]], f"{PATH}[0]"),
        ([{"content": "hi"}], f"{PATH}[0]"),
        ([{"role": "user"}], f"{PATH}[0]"),
        ([{"role": "god", "content": "hi"}], f"{PATH}[0].role"),
        ([{"role": "user", "type": "ai", "content": "hi"}], f"{PATH}[0]"),
        ([{"role": "user", "content": 5}], f"{PATH}[0].content"),
        ([{"role": "user", "content": None}], f"{PATH}[0].content"),
        ([{"role": "user", "content": "hi", "id": ""}], f"{PATH}[0].id"),
        ([{"role": "user", "content": "hi", "id": "x" * 256}], f"{PATH}[0].id"),
        ([{"role": "user", "content": "hi", "mood": "good"}], f"{PATH}[0]"),
        ([{"role": "user", "content": "hi", "tool_calls": []}], f"{PATH}[0]"),
        ([{"role": "user", "content": "hi", "example": True}], f"{PATH}[0].example"),
        ([{"role": "user", "content": "hi", "additional_kwargs": {"a": 1}}], f"{PATH}[0].additional_kwargs"),
        ([{"role": "user", "content": "hi", "response_metadata": {"a": 1}}], f"{PATH}[0].response_metadata"),
        ([{"role": "user", "content": [{"text": "hi"}]}], f"{PATH}[0].content[0].type"),
        ([{"role": "user", "content": [{"type": "text"}]}], f"{PATH}[0].content[0].text"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}], f"{PATH}[0].content[0].image_url"),
        ([{"role": "ai", "content": [{"type": "image_url", "image_url": {}}]}], f"{PATH}[0].content[0].type"),
        ([{"role": "ai", "content": None}], f"{PATH}[0].content"),
        ([{"role": "ai", "content": "", "invalid_tool_calls": [{}]}], f"{PATH}[0].invalid_tool_calls"),
        ([{"role": "ai", "content": "", "tool_calls": [{**CALL, "args": "{}"}]}], f"{PATH}[0].tool_calls[0].args"),
        ([{"role": "ai", "content": "", "tool_calls": [{**CALL, "id": None}]}], f"{PATH}[0].tool_calls[0].id"),
        ([{"role": "ai", "content": "", "tool_calls": [CALL, CALL]}], f"{PATH}[0].tool_calls"),
        (
            [
                {
                    "role": "ai",
                    "content": "",
                    "usage_metadata": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 3},
                }
            ],
            f"{PATH}[0].usage_metadata.total_tokens",
        ),
        ([{"role": "tool", "content": "2"}], f"{PATH}[0]"),
        ([{**RESULT, "artifact": {"a": 1}}], f"{PATH}[0].artifact"),
        ([{**RESULT, "status": "maybe"}], f"{PATH}[0].status"),
        (["a", {"role": "user", "content": "b", "id": "x"}, {"role": "user", "content": "c", "id": "x"}], PATH),
    ],
)
def test_what_cannot_be_honoured_is_refused_with_its_place(value: Any, path: str) -> None:
    """Nothing is dropped in silence: an unknown key, a half-filled block, a kind nobody knows."""
    place, sentence = refusal(value)

    assert place == path
    assert sentence.startswith(f"{path}: ")


@pytest.mark.parametrize(
    "value",
    [
        [{"role": "ai", "content": "", "tool_calls": [CALL]}],
        [{"role": "ai", "content": "", "tool_calls": [CALL]}, "and now?"],
        ["hi", RESULT],
        [{"role": "ai", "content": "", "tool_calls": [CALL]}, RESULT, {**RESULT, "id": "again"}],
    ],
)
def test_an_input_answers_its_own_calls(value: Any) -> None:
    """A call without a result right behind it would make every later model call of the thread invalid."""
    assert refusal(value)[0] == PATH


def test_an_update_may_leave_the_calls_of_the_last_reply_open() -> None:
    """They are what the node `tools` is to do next; earlier ones are not."""
    reply = Message(id="1", type="ai", content="", tool_calls=(ToolCall(id="c1", name="add", arguments={}),))

    check_calls([reply], PATH, may_end_open=True)
    with pytest.raises(BodyRefused):
        check_calls([reply, Message(id="2", type="human", content="hm")], PATH, may_end_open=True)


def test_a_removal_is_for_updates_alone() -> None:
    """An input cannot remove; an update can, by id or all at once."""
    removal = RemoveMessage(id="old").model_dump()

    revision = read_revision([removal, "hi"], PATH, lambda: "new")

    assert (revision.removed, [each.id for each in revision.messages], revision.clears) == (("old",), ["new"], False)
    assert refusal([removal])[0] == PATH


def test_a_removal_of_everything_counts_from_there() -> None:
    """What stood before it in the same update is gone as well."""
    revision = read_revision(["a", {"type": "remove", "id": REMOVE_ALL}, "b"], PATH, lambda: "new")

    assert ([each.content for each in revision.messages], revision.clears) == (["b"], True)
