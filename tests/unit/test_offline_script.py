"""The offline model's rules: from a request to its reply, and nothing else."""

import json
from typing import Any

import pytest

from threadmark.workers.models import offline_reply
from threadmark.workers.models.script import PlannedReply, words

TOOLS = ("confirm", "lookup", "mail")


def ask(*messages: dict[str, Any], tools: tuple[str, ...] = TOOLS) -> PlannedReply:
    return offline_reply({"messages": list(messages), "tools": [{"function": {"name": name}} for name in tools]})


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def played(script: str, *before: dict[str, Any]) -> tuple[list[list[tuple[str, str]]], str, list[str]]:
    """Play a script to its end: the calls of each turn, the last text, and all call ids."""
    messages = [*before, user(script)]
    turns: list[list[tuple[str, str]]] = []
    ids: list[str] = []
    for _ in range(20):
        reply = ask(*messages)
        if not reply.calls:
            return turns, reply.text, ids
        turns.append([(call.name, call.arguments) for call in reply.calls])
        calls = [{"id": call.id, "function": {"name": call.name, "arguments": call.arguments}} for call in reply.calls]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        for call in reply.calls:
            ids.append(call.id)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": f"result {len(ids)}"})
    raise AssertionError("the script does not end")


def test_each_call_line_is_a_turn_of_its_own() -> None:
    """Lines are called in order, one model turn each, and the end repeats the results in order."""
    turns, text, ids = played('call lookup {"id": 1}\ncall mail {"to": "a b"}')

    assert turns == [[("lookup", '{"id":1}')], [("mail", '{"to":"a b"}')]]
    assert text == "Done.\nresult 1\nresult 2"
    assert len(set(ids)) == 2


def test_parallel_lines_that_stand_together_are_one_turn() -> None:
    """A call line, an empty line or any other line parts two groups."""
    turns, text, _ = played(
        "parallel lookup {}\nparallel mail {}\n\nparallel mail {}\ncall lookup {}\n"
        "parallel confirm {}\nand then\nparallel confirm {}\nparallel lookup {}"
    )

    assert [[name for name, _ in turn] for turn in turns] == [
        ["lookup", "mail"],
        ["mail"],
        ["lookup"],
        ["confirm"],
        ["confirm", "lookup"],
    ]
    assert text.count("result") == 7


def test_other_lines_of_a_script_are_ignored() -> None:
    """Words around the call lines, indents and line ends of any kind do not matter; no arguments are `{}`."""
    turns, _, _ = played("Please do this:\r\n  call lookup\r\ncalling nobody\ncall\n\tcall   mail   {}  \nThanks")

    assert turns == [[("lookup", "{}")], [("mail", "{}")]]


def test_only_the_last_user_message_is_the_script() -> None:
    """What was asked before, and what came of it, plays no part."""
    earlier = [
        user("call mail {}"),
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "mail", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "sent"},
        {"role": "assistant", "content": "Done.\nsent"},
    ]

    turns, text, ids = played("call lookup {}", *earlier)
    again, _, other_ids = played("call lookup {}", *earlier, user("x"), {"role": "assistant", "content": "y"})

    assert turns == again == [[("lookup", "{}")]]
    assert text == "Done.\nresult 1"
    assert ids != other_ids


def test_the_same_request_has_the_same_reply() -> None:
    """Ids follow from the request alone."""
    assert ask(user("call mail {}")) == ask(user("call mail {}"))


def test_a_group_with_some_results_goes_on_with_the_rest() -> None:
    """Progress is the number of results behind the message, wherever it stands."""
    reply = ask(
        user("parallel lookup {}\nparallel mail {}\nparallel confirm {}"),
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "lookup", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "found"},
    )

    assert [call.name for call in reply.calls] == ["mail", "confirm"]


def test_anything_else_is_repeated() -> None:
    """The count is of the messages in the request, without the system text."""
    reply = ask({"role": "system", "content": "s"}, user("a"), {"role": "assistant", "content": "b"}, user("hi\nyou"))

    assert reply == PlannedReply(text="You said: hi\nyou\n(3 messages in view)")
    assert reply.finish_reason == "stop"


def test_parts_of_a_message_are_joined() -> None:
    """Text parts are lines; other parts are not seen."""
    parts = [
        {"type": "text", "text": "call mail {}"},
        {"type": "image_url", "image_url": {}},
        {"type": "text", "text": "x"},
    ]

    assert [call.name for call in ask(user(parts)).calls] == ["mail"]


def test_a_request_without_a_user_message_is_answered() -> None:
    """There is nothing to repeat."""
    assert ask({"role": "assistant", "content": "b"}).text == "You said: \n(1 message in view)"


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        (
            "call lookup {}\ncall refnd {}",
            "Line 2 cannot be run: no tool is named refnd. Tools here: confirm, lookup, mail.",
        ),
        ('x\nparallel mail {"a"', "Line 2 cannot be run: what follows mail is no valid JSON: "),
        ("call mail [1]", "Line 1 cannot be run: what follows mail is a JSON array, not an object. Write: call mail {"),
        ('call mail {"a":1,"a":2}', "the key 'a' is given twice"),
    ],
)
def test_a_script_that_cannot_be_run_calls_nothing(script: str, sentence: str) -> None:
    """The answer names the line and what to write, before the first line is called."""
    reply = ask(user(script))

    assert sentence in reply.text
    assert reply.calls == ()


def test_without_tools_no_line_can_be_run() -> None:
    """The answer says that there are none."""
    assert ask(user("call mail {}"), tools=()).text.endswith("Tools here: none.")


def test_a_long_line_of_blanks_is_read_at_once() -> None:
    """Reading a script takes time in proportion to its length, whatever it holds."""
    reply = ask(user("call mail {" + " " * 500_000 + '"a": 1}'))

    assert json.loads(reply.calls[0].arguments) == {"a": 1}


@pytest.mark.parametrize("text", ["", "one", "  two words \n\n and\tmore  ", "漢 字"])
def test_words_join_to_the_text(text: str) -> None:
    """The pieces that are streamed lose nothing."""
    assert "".join(words(text)) == text


@pytest.mark.parametrize(
    ("line", "name", "arguments"),
    [
        ("remember:  Rex is a dog. ", "remember", {"text": "Rex is a dog."}),
        ("Recall: who is Rex?", "recall", {"question": "who is Rex?"}),
        (
            "user.city = Lisbon",
            "remember",
            {"text": "user.city = Lisbon", "subject": "user", "attribute": "city", "value": "Lisbon"},
        ),
        (
            "remember: user.age = 7",
            "remember",
            {"text": "user.age = 7", "subject": "user", "attribute": "age", "value": 7},
        ),
    ],
)
def test_a_line_of_memory_calls_its_tool(line: str, name: str, arguments: dict[str, object]) -> None:
    """Where the tool is offered; elsewhere it is a line like any other."""
    (call,) = ask(user(f"hello\n{line}"), tools=("remember", "recall")).calls

    assert (call.name, json.loads(call.arguments)) == (name, arguments)
    assert ask(user(line)).text.startswith("You said: ")


@pytest.mark.parametrize("verb", ["remember: x", "recall: x", "a.b = x"])
def test_a_long_line_of_memory_is_read_at_once(verb: str) -> None:
    """However many blanks are in it."""
    (call,) = ask(user(verb + " " * 200_000 + "y"), tools=("remember", "recall")).calls

    assert "y" in call.arguments
