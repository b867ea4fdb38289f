"""Transcripts: the message of a tool result, and calls without a result."""

import json
from typing import Any

from threadmark.state.entries.entry import ToolReturned
from threadmark.state.entries.message import Message, ToolCall
from threadmark.state.entries.value import plain

__all__ = ["result_message", "unanswered_calls"]


def unanswered_calls(messages: list[Message]) -> list[ToolCall]:
    """Calls of the last reply that no tool message answers; none if a person has spoken since."""
    results = {each.tool_call_id for each in messages if each.type == "tool"}
    for message in reversed(messages):
        if message.type == "ai":
            return [call for call in message.tool_calls if call.id not in results]
        if message.type == "human":
            return []
    return []


def result_message(entry: ToolReturned) -> Message:
    """The message with the outcome of a tool call for the model."""
    if entry.outcome == "ok":
        content = entry.value if isinstance(entry.value, str) else _json_text(plain(entry.value))
    else:
        content = entry.failure.message if entry.failure else entry.outcome
    return Message(
        id=entry.message_id,
        type="tool",
        content=content,
        name=entry.tool,
        tool_call_id=entry.call_id,
        status="success" if entry.outcome == "ok" else "error",
    )


def _json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
