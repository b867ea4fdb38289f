"""What goes to a model and what comes back."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from threadmark.state.entries.message import Message, ToolCall, Usage

__all__ = ["ModelReply", "ModelRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One model call."""

    messages: tuple[Message, ...]
    idempotency_key: str  #: sent as a header; servers that know it do not charge twice
    instructions: str = ""
    recalled: str = ""  #: a block of data from memory, for the last message of a person
    tools: tuple[Mapping[str, Any], ...] = ()  #: definitions, see `Tool.definition`
    model: str | None = None  #: None: the model that the server is set up with
    reply_token_count_max: int | None = None


class ModelReply(msgspec.Struct, frozen=True, kw_only=True):
    """A whole reply.

    `tool_calls` has every call in the order asked for, under ids that are unique in the conversation. A call whose
    name or arguments cannot be used stays in it, with empty arguments, and `invalid_calls` has the reason by call id:
    it is answered with an error result instead of being performed.
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    invalid_calls: dict[str, str] = {}
    usage: Usage
    finish_reason: str
    model: str  #: as the server names it
    cuts: tuple[int, ...] = ()  #: lengths in code points of the text deltas as they were streamed; they sum to the text
