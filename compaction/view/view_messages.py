"""A rendered view as the journal's messages: what the model is sent."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from threadmark.compaction.view.render import Rendered, RenderedPart
from threadmark.state import Message, ToolCall

__all__ = ["view_messages"]


def view_messages(rendered: Rendered) -> list[Message]:
    """The rendered view as messages, ready for a model's client.

    Ids are made from what a message shows, so the same view has the same messages.
    """
    return [_message(place, part) for place, part in enumerate(rendered.parts)]


def _message(place: int, part: RenderedPart) -> Message:
    content = part.content if isinstance(part.content, str) else msgspec.json.decode(msgspec.json.encode(part.content))
    calls: Sequence[ToolCall] = [ToolCall(call.id, call.name, _arguments(call.arguments)) for call in part.calls]
    where = part.segment_id or (f"seq{part.seq}" if part.seq is not None else part.call_id)
    return Message(
        id=f"{part.kind}-{where}-{place}",
        type=part.role.value,
        content=content,
        name=part.name,
        tool_calls=tuple(calls),
        tool_call_id=part.call_id,
        status="error" if part.failed else "success",
    )


def _arguments(written: str) -> dict[str, Any]:
    """A call's arguments; what is no JSON object (a model may write anything) is kept under one name."""
    try:
        given = json.loads(written)
    except ValueError:
        return {"unreadable": written}
    return given if isinstance(given, dict) else {"unreadable": written}
