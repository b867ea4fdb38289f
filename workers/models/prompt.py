"""The transcript as chat completions want it. Pure."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from threadmark.state.entries.message import Message
from threadmark.workers.models.errors import PromptInvalid

__all__ = ["check_call_results", "to_openai"]

#: What a person may send; everybody else sends text.
_PARTS = {"text", "image_url", "input_audio", "file"}
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_NAME_LENGTH_MAX = 64
#: One for all calls: making an encoder costs more than most arguments do.
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def to_openai(instructions: str, messages: Sequence[Message], recalled: str = "") -> list[dict[str, Any]]:
    """The messages of a chat completion: the system text first, then the transcript in order.

    What was `recalled` for a person's last message stands right before it, in a message of its own: all that comes
    before is the same as ever, so a server that caches prefixes finds it again.

    Raises PromptInvalid for a content block that no model takes, and where a tool call is not followed by its result:
    the model's server would refuse every later turn of such a thread.
    """
    prompt: list[dict[str, Any]] = []
    if instructions:
        prompt.append({"role": "system", "content": instructions})
    asked_at = max((at for at, each in enumerate(messages) if each.type == "human"), default=-1)
    for at, each in enumerate(messages):
        if at == asked_at and recalled:
            prompt.append({"role": "user", "content": recalled})
        prompt.append(_WRITERS[each.type](each))
    check_call_results(prompt)
    return prompt


def check_call_results(prompt: Sequence[Mapping[str, Any]]) -> None:
    """Check that each tool call is answered by the tool messages right behind it, each call once and no other.

    Raises PromptInvalid, naming the first call or result that stands wrong.
    """
    open_ids: list[str] = []
    for message in prompt:
        if message.get("role") == "tool":
            answered = message.get("tool_call_id")
            if answered not in open_ids:
                raise PromptInvalid(f"a tool result answers {answered!r}, which no call right before it asked for")
            open_ids.remove(answered)
            continue
        if open_ids:
            raise PromptInvalid(f"tool call {open_ids[0]!r} is not followed by its result")
        open_ids = [call["id"] for call in message.get("tool_calls") or ()]
        if len(open_ids) != len(set(open_ids)):
            raise PromptInvalid(f"two tool calls of one message share an id among {open_ids}")
    if open_ids:
        raise PromptInvalid(f"tool call {open_ids[0]!r} is not followed by its result")


def _system(message: Message) -> dict[str, Any]:
    return {"role": "system", "content": _texts(message)}


def _human(message: Message) -> dict[str, Any]:
    content = (
        message.content if isinstance(message.content, str) else [_part(message, each) for each in message.content]
    )
    written: dict[str, Any] = {"role": "user", "content": content}
    if message.name:
        # A server refuses names with spaces and the like; the transcript keeps the name as it was given.
        written["name"] = _NOT_IN_NAMES.sub("_", message.name)[:_NAME_LENGTH_MAX]
    return written


def _ai(message: Message) -> dict[str, Any]:
    content = _texts(message)
    if not message.tool_calls:
        return {"role": "assistant", "content": content or ""}
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _json_text(call.arguments)}}
        for call in message.tool_calls
    ]
    return {"role": "assistant", "content": content or None, "tool_calls": calls}


def _tool(message: Message) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": message.tool_call_id, "content": _texts(message)}


_WRITERS: dict[str, Callable[[Message], dict[str, Any]]] = {
    "system": _system,
    "human": _human,
    "ai": _ai,
    "tool": _tool,
}


def _texts(message: Message) -> str | list[dict[str, Any]]:
    """Text, or text parts; raises PromptInvalid for any other block, which only a person may send."""
    if isinstance(message.content, str):
        return message.content
    for block in message.content:
        if block.get("type") != "text":
            raise PromptInvalid(
                f"message {message.id!r} ({message.type}) has a block of type {block.get('type')!r}; it may have text"
            )
    return [_part(message, each) for each in message.content]


def _part(message: Message, block: Mapping[str, Any]) -> dict[str, Any]:
    kind = block.get("type")
    if kind not in _PARTS or kind not in block:
        raise PromptInvalid(
            f"message {message.id!r} has a block of type {kind!r}; blocks are {', '.join(sorted(_PARTS))}"
        )
    # Only what the protocol knows: front ends add keys of their own, and a server refuses the ones it does not know.
    return {"type": kind, kind: block[kind]}


def _json_text(arguments: Mapping[str, Any]) -> str:
    return _JSON.encode(arguments)
