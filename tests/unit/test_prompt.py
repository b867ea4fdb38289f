"""The transcript as chat completions want it, and the check that calls and results belong together."""

from typing import Any

import pytest

from threadmark.state.entries.message import Message, ToolCall
from threadmark.workers.models import PromptInvalid, check_call_results, to_openai

CALLS = (ToolCall("c1", "add", {"a": 1, "text": "é\x00"}), ToolCall("c2", "now", {}))


def human(content: Any = "hi", **changes: Any) -> Message:
    return Message("m", "human", content, **changes)


def ai(content: Any = "", calls: tuple[ToolCall, ...] = ()) -> Message:
    return Message("m", "ai", content, tool_calls=calls)


def result(call_id: str | None, content: Any = "3") -> Message:
    return Message("m", "tool", content, tool_call_id=call_id, status="error")


def test_a_transcript_becomes_a_prompt() -> None:
    """The system text comes first; calls carry their arguments as JSON text; results name their call."""
    prompt = to_openai("Be brief.", [human(), ai("", CALLS), result("c2", "noon"), result("c1"), ai("Done.")])

    assert prompt == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":1,"text":"é\\u0000"}'}},
                {"id": "c2", "type": "function", "function": {"name": "now", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c2", "content": "noon"},
        {"role": "tool", "tool_call_id": "c1", "content": "3"},
        {"role": "assistant", "content": "Done."},
    ]


def test_without_instructions_there_is_no_system_message() -> None:
    """An empty system text is not sent; system messages of the transcript stay in their place."""
    assert to_openai("", [human(), Message("s", "system", "Now in French.")]) == [
        {"role": "user", "content": "hi"},
        {"role": "system", "content": "Now in French."},
    ]


def test_text_beside_calls_is_kept() -> None:
    """A model that speaks and calls at once is shown both."""
    (written, _) = to_openai("", [ai("Let me see.", CALLS[:1]), result("c1")])

    assert written["content"] == "Let me see."


def test_blocks_are_passed_without_keys_that_servers_refuse() -> None:
    """Text, images, audio and files pass; what front ends add to a block does not."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    blocks = [{"type": "text", "text": "look", "id": "b1", "index": 0}, {**image, "extra": 1}]

    assert to_openai("", [human(blocks)])[0]["content"] == [{"type": "text", "text": "look"}, image]


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (
            human([{"type": "video", "video": {}}]),
            "block of type 'video'; blocks are file, image_url, input_audio, text",
        ),
        (human([{"type": "text"}]), "block of type 'text'"),
        (human([{}]), "block of type None"),
        (ai([{"type": "image_url", "image_url": {}}]), r"\(ai\) has a block of type 'image_url'; it may have text"),
    ],
)
def test_blocks_that_no_model_takes_are_refused(message: Message, sentence: str) -> None:
    """The sentence names the message and the type of the block."""
    with pytest.raises(PromptInvalid, match=sentence):
        to_openai("", [message])


def test_names_are_made_fit_to_send() -> None:
    """A person's name with blanks or signs would be refused by the server; it is sent with underscores."""
    assert to_openai("", [human(name="Ana María <x>")])[0]["name"] == "Ana_Mar_a__x_"
    assert "name" not in to_openai("", [human(name="")])[0]


def test_an_empty_reply_is_sent_as_empty_text() -> None:
    """A server refuses an assistant message without content and without calls."""
    assert to_openai("", [ai([])]) == [{"role": "assistant", "content": ""}]


@pytest.mark.parametrize(
    ("messages", "sentence"),
    [
        ([ai("", CALLS)], "call 'c1' is not followed by its result"),
        ([ai("", CALLS), result("c1")], "call 'c2' is not followed by its result"),
        ([ai("", CALLS), result("c1"), human(), result("c2")], "call 'c2' is not followed"),
        ([ai("", CALLS), human()], "call 'c1' is not followed"),
        ([ai("", CALLS), result("c1"), result("c1")], "answers 'c1', which no call right before it"),
        ([ai("", CALLS[:1]), result("c1"), result("c1")], "answers 'c1', which no call right before it"),
        ([human(), result("c9")], "answers 'c9'"),
        ([human(), result(None)], "answers None"),
        ([ai("", (CALLS[0], CALLS[0])), result("c1"), result("c1")], "two tool calls of one message share an id"),
    ],
)
def test_a_call_without_its_result_is_never_sent(messages: list[Message], sentence: str) -> None:
    """Each call has its result right behind it, each result its call; a server would refuse the thread for ever."""
    with pytest.raises(PromptInvalid, match=sentence):
        to_openai("", messages)


def test_an_id_may_come_again_in_a_later_turn() -> None:
    """Only the calls of one message must differ in their ids."""
    turn = [ai("", CALLS[:1]), result("c1")]

    check_call_results(to_openai("", turn + turn))
