"""Messages of a transcript, in the form in which the journal stores them."""

from typing import Any, Literal

import msgspec

__all__ = ["Message", "ToolCall", "Usage"]


class ToolCall(msgspec.Struct, frozen=True):
    """One call that a model requested; `id` is unique within its thread."""

    id: str
    name: str
    arguments: dict[str, Any]


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one model call, as reported by the model's server."""

    input_tokens: int
    output_tokens: int


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of a person, the model or a tool.

    `content` is text or a list of content blocks (`{"type": "text", "text": …}`).
    Only an `ai` message has `tool_calls` and `usage`; only a `tool` message has `tool_call_id` and a `status`
    other than `success`.
    """

    id: str
    type: Literal["human", "ai", "tool", "system"]
    content: str | list[dict[str, Any]]
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    status: Literal["success", "error"] = "success"
    usage: Usage | None = None

    @property
    def text(self) -> str:
        """The words of the message; its text parts are joined by line breaks."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(str(part.get("text", "")) for part in self.content if part.get("type") == "text")
