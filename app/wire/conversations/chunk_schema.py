"""Chunks of a reply, as message streams of the dialect show them; joined by their id they are the reply."""

from typing import Any

import msgspec

from threadmark.app.wire.conversations.message_schema import message_to_wire
from threadmark.state import Message, ModelReplied

__all__ = ["delta_chunk", "final_chunk", "partial_message"]


def delta_chunk(text: str, message_id: str) -> dict[str, Any]:
    """A piece of the reply's text."""
    return _chunk(Message(id=message_id, type="ai", content=text))


def final_chunk(entry: ModelReplied) -> dict[str, Any]:
    """What had not streamed of the reply: its calls, its usage, and text that came in one piece."""
    reply = entry.message
    streamed = sum(entry.cuts)
    content = reply.content[streamed:] if isinstance(reply.content, str) else reply.content
    chunk = _chunk(msgspec.structs.replace(reply, content=content))
    chunk["response_metadata"] = {"finish_reason": entry.finish_reason, "model_name": entry.model}
    chunk["tool_call_chunks"] = [
        {
            "name": call.name,
            "args": msgspec.json.encode(call.arguments).decode(),
            "id": call.id,
            "index": index,
            "type": "tool_call_chunk",
        }
        for index, call in enumerate(reply.tool_calls)
    ]
    chunk["chunk_position"] = "last"
    return chunk


def partial_message(text: str, message_id: str) -> dict[str, Any]:
    """The reply as far as it has streamed."""
    return message_to_wire(Message(id=message_id, type="ai", content=text))


def _chunk(message: Message) -> dict[str, Any]:
    shown = message_to_wire(message)
    return {**shown, "type": "AIMessageChunk", "tool_call_chunks": [], "chunk_position": None}
