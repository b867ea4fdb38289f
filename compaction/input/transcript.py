"""From the journal's messages: what a compaction reads of them."""

import hashlib
import json
from typing import Any

from threadmark.compaction.input.source import Call, Part, PartKind, Role, SourceEntry, Trust
from threadmark.state import Message

__all__ = ["source_entry"]

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


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
