"""Messages of the dialect: how ours are shown, and what is taken from a caller.

A message comes as `{"role" | "type", "content", …}`; a text alone is one of a person. Everything that is named is
used or refused with its place. What SDKs send back of the messages that they were shown is taken where it says
nothing: `additional_kwargs`, `response_metadata` and `invalid_tool_calls` empty, `artifact` null, `example` false.
`usage_metadata` of a reply is kept.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import msgspec

from threadmark.app.http.body_errors import BodyRefused
from threadmark.app.wire.conversations.message_shapes import (
    AiShape,
    CallShape,
    HumanShape,
    Kind,
    RemoveShape,
    Shape,
    SystemShape,
    ToolShape,
)
from threadmark.app.wire.typed_json import read_as
from threadmark.state import Message, ToolCall, Usage

__all__ = ["REMOVE_ALL", "Revision", "check_calls", "message_to_wire", "read_messages", "read_revision"]

#: The id of a removal that empties the transcript.
REMOVE_ALL = "__remove_all__"

NewId = Callable[[], str]
_KINDS: dict[str, Kind] = {
    "human": "human",
    "user": "human",
    "ai": "ai",
    "assistant": "ai",
    "system": "system",
    "tool": "tool",
    "remove": "remove",
}
_SHAPES: dict[Kind, type[Shape]] = {
    "human": HumanShape,
    "ai": AiShape,
    "system": SystemShape,
    "tool": ToolShape,
    "remove": RemoveShape,
}
#: Blocks that a person may send; everybody else sends text.
_BLOCKS = ("text", "image_url", "input_audio", "file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """How a transcript is to change: `removed` ids go, `messages` come or take the place of their ids.

    `clears` empties the transcript first.
    """

    messages: tuple[Message, ...]
    removed: tuple[str, ...]
    clears: bool


def message_to_wire(message: Message) -> dict[str, Any]:
    """The message as clients of the dialect see it."""
    shown: dict[str, Any] = {
        "content": message.content,
        "additional_kwargs": {},
        "response_metadata": {},
        "type": message.type,
        "name": message.name,
        "id": message.id,
    }
    if message.type == "ai":
        usage = message.usage
        shown["tool_calls"] = [
            {"name": call.name, "args": call.arguments, "id": call.id, "type": "tool_call"}
            for call in message.tool_calls
        ]
        shown["invalid_tool_calls"] = []
        shown["usage_metadata"] = None if usage is None else _usage_to_wire(usage)
    if message.type == "tool":
        shown |= {"tool_call_id": message.tool_call_id, "artifact": None, "status": message.status}
    return shown


def read_messages(value: Any, path: str, new_id: NewId) -> tuple[Message, ...]:
    """The messages of a run's input: a list, one message alone, or a text. `new_id` names those without an id.

    Raises BodyRefused, also for a tool call that the message right behind it does not answer.
    """
    revision = read_revision(value, path, new_id)
    if revision.removed or revision.clears:
        raise BodyRefused(path, "an input removes no messages; update the thread's state instead")
    check_calls(revision.messages, path, may_end_open=False)
    return revision.messages


def read_revision(value: Any, path: str, new_id: NewId) -> Revision:
    """The change that an update of `messages` asks for. Raises BodyRefused; calls are not looked at."""
    listed = value if isinstance(value, list) else [value]
    messages: list[Message] = []
    removed: list[str] = []
    clears = False
    for index, each in enumerate(listed):
        place = f"{path}[{index}]" if listed is value else path
        said = _read(each, place)
        if isinstance(said, RemoveShape) and said.id == REMOVE_ALL:
            messages, removed, clears = [], [], True
        elif isinstance(said, RemoveShape):
            removed.append(said.id)
        else:
            messages.append(_message_of(said, place, new_id))
    _check_ids([*removed, *(each.id for each in messages)], path)
    return Revision(messages=tuple(messages), removed=tuple(removed), clears=clears)


def check_calls(messages: Sequence[Message], path: str, *, may_end_open: bool) -> None:
    """Refuse a transcript that no model takes: each call is answered by the tool messages right behind it, once.

    The calls of the last reply may still be open if `may_end_open`. Raises BodyRefused.
    """
    open_ids: list[str] = []
    for message in messages:
        if message.type == "tool":
            if message.tool_call_id not in open_ids:
                raise BodyRefused(path, f"tool message {message.id!r} answers no call of the reply right before it")
            open_ids.remove(message.tool_call_id)
            continue
        if open_ids:
            raise BodyRefused(path, f"tool call {open_ids[0]!r} is not followed by its result")
        open_ids = [call.id for call in message.tool_calls]
    if open_ids and not may_end_open:
        raise BodyRefused(path, f"tool call {open_ids[0]!r} is not followed by its result")


def _read(value: Any, path: str) -> Shape:
    if isinstance(value, str):
        return HumanShape(content=value)
    if not isinstance(value, dict):
        raise BodyRefused(path, "a message is an object or a text")
    return read_as(_SHAPES[_kind_of(value, path)], value, path)


def _kind_of(value: dict[str, Any], path: str) -> Kind:
    """The kind that `role` and `type` name, whichever is there."""
    kinds: set[Kind] = set()
    for key in ("role", "type"):
        name = value.get(key)
        if name is not None:
            if not isinstance(name, str) or name not in _KINDS:
                raise BodyRefused(f"{path}.{key}", f"is none of {', '.join(_KINDS)}")
            kinds.add(_KINDS[name])
    if len(kinds) != 1:
        raise BodyRefused(path, "role and type name different things" if kinds else "a message has a role or a type")
    return kinds.pop()


def _message_of(said: HumanShape | AiShape | SystemShape | ToolShape, path: str, new_id: NewId) -> Message:
    message_id = said.id or new_id()
    match said:
        case HumanShape():
            _check_example(said, path)
            content = _content_of(said.content, _BLOCKS, path)
            return Message(id=message_id, type="human", content=content, name=said.name)
        case SystemShape():
            content = _content_of(said.content, _BLOCKS[:1], path)
            return Message(id=message_id, type="system", content=content, name=said.name)
        case ToolShape():
            return Message(
                id=message_id,
                type="tool",
                content=_content_of(said.content, _BLOCKS[:1], path),
                name=said.name,
                tool_call_id=said.tool_call_id,
                status=said.status,
            )
        case AiShape():
            return _reply_of(said, message_id, path)
        case other:
            assert_never(other)


def _reply_of(said: AiShape, message_id: str, path: str) -> Message:
    _check_example(said, path)
    calls = said.tool_calls or []
    if said.content is None and not calls:
        raise BodyRefused(f"{path}.content", "a reply without tool calls has a content")
    return Message(
        id=message_id,
        type="ai",
        content="" if said.content is None else _content_of(said.content, _BLOCKS[:1], path),
        name=said.name,
        tool_calls=_calls_of(calls, f"{path}.tool_calls"),
        usage=_usage_of(said, path),
    )


def _check_example(said: HumanShape | AiShape, path: str) -> None:
    if said.example:
        raise BodyRefused(f"{path}.example", "is not supported; leave it out")


def _content_of(
    content: str | list[str | dict[str, Any]], allowed: Sequence[str], path: str
) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    blocks: list[dict[str, Any]] = []
    for index, given in enumerate(content):
        block = {"type": "text", "text": given} if isinstance(given, str) else given
        place, name = f"{path}.content[{index}]", block.get("type")
        if not isinstance(name, str) or name not in allowed:
            raise BodyRefused(f"{place}.type", f"is none of the blocks of such a message: {', '.join(allowed)}")
        if not isinstance(block.get(name), str if name == "text" else dict):
            raise BodyRefused(f"{place}.{name}", f"is not {'a text' if name == 'text' else 'an object'}")
        blocks.append(block)
    return blocks


def _calls_of(calls: Sequence[CallShape], path: str) -> tuple[ToolCall, ...]:
    _check_ids([call.id for call in calls], path)
    return tuple(ToolCall(id=call.id, name=call.name, arguments=call.args) for call in calls)


def _check_ids(ids: Sequence[str], path: str) -> None:
    seen: set[str] = set()
    for each in ids:
        if each in seen:
            raise BodyRefused(path, f"names the id {each!r} twice")
        seen.add(each)


def _usage_of(said: AiShape, path: str) -> Usage | None:
    given = said.usage_metadata
    if given is None:
        return None
    if given.total_tokens not in (None, given.input_tokens + given.output_tokens):
        raise BodyRefused(f"{path}.usage_metadata.total_tokens", "is not the sum of input_tokens and output_tokens")
    return Usage(input_tokens=given.input_tokens, output_tokens=given.output_tokens)


def _usage_to_wire(usage: Usage) -> dict[str, int]:
    return {**msgspec.structs.asdict(usage), "total_tokens": usage.input_tokens + usage.output_tokens}
