"""To and from the journal's messages: what a compaction reads of them, and what the model is sent instead."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import msgspec

from threadmark.compaction.input.source import Call, Part, PartKind, Role, SourceEntry, Trust
from threadmark.compaction.view import Rendered, RenderedPart
from threadmark.state import Message, ToolCall

__all__ = ["source_entry", "view_messages"]

_OPAQUE_BLOCKS = frozenset({"reasoning", "thinking", "redacted_thinking", "compaction"})


def source_entry(
    message: Message,
    seq: int,
    *,
    ordinal: int = 0,
    tokens: int = 0,
    trust: Trust | None = None,
    pinned: bool = False,
    critical: bool = False,
    is_open: bool = False,
    links: tuple[str, ...] = (),
) -> SourceEntry:
    """A journal's message in its place: entry `seq`, and `ordinal` among the messages of that entry.

    `tokens` are as counted for the model that reads the thread; `is_open` says that a question is not
    answered.
    """
    blocks = [{"type": "text", "text": message.content}] if isinstance(message.content, str) else message.content
    return SourceEntry(
        seq=seq,
        message=ordinal,
        role=Role(message.type),
        parts=tuple(_part(block) for block in blocks),
        message_id=message.id,
        name=message.name,
        calls=tuple(
            Call(call_id=call.id, name=call.name, arguments=_json(call.arguments)) for call in message.tool_calls
        ),
        answers=() if message.tool_call_id is None else (message.tool_call_id,),
        failed=message.status == "error",
        links=links,
        trust=trust,
        tokens=tokens,
        pinned=pinned,
        critical=critical,
        is_open=is_open,
    )


def _part(block: dict[str, Any]) -> Part:
    """A content block: text is read, everything else is known by its kind, its size and its digest."""
    if block.get("type") == "text" and isinstance(block.get("text"), str):
        return Part(text=block["text"])
    written = _json(block)
    kind = PartKind.OPAQUE if block.get("type") in _OPAQUE_BLOCKS else PartKind.MEDIA
    return Part(
        kind=kind,
        media_type=str(block.get("type", "")),
        digest=hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest(),
        size=len(written.encode("utf-8", "surrogatepass")),
        block=written,
    )


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


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
