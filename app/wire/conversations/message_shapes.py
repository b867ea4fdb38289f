"""What a caller may write as a message: one closed shape for each kind."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

__all__ = ["AiShape", "CallShape", "HumanShape", "Kind", "RemoveShape", "Shape", "SystemShape", "ToolShape"]

#: Characters of an id or a name.
NAME_CHARS_MAX = 255

Kind = Literal["human", "ai", "system", "tool", "remove"]
_Name = Annotated[str, Meta(min_length=1, max_length=NAME_CHARS_MAX)]
_Content = str | list[str | dict[str, Any]]
_Nothing = Annotated[dict[str, Any], Meta(max_length=0)] | None
_Count = Annotated[int, Meta(ge=0, lt=2**53)]


class _Shape(Struct, forbid_unknown_fields=True, kw_only=True):
    role: str | None = None
    type: str | None = None
    id: _Name | None = None
    name: _Name | None = None
    additional_kwargs: _Nothing = None
    response_metadata: _Nothing = None


class HumanShape(_Shape, kw_only=True):
    """What a person said."""

    content: _Content
    example: bool = False


class SystemShape(_Shape, kw_only=True):
    """An instruction in the middle of a transcript."""

    content: _Content


class CallShape(Struct, forbid_unknown_fields=True, kw_only=True):
    """A tool call of a reply."""

    id: _Name
    name: _Name
    args: dict[str, Any]
    type: Literal["tool_call"] = "tool_call"


class UsageShape(Struct, forbid_unknown_fields=True, kw_only=True):
    """Tokens of a reply."""

    input_tokens: _Count
    output_tokens: _Count
    total_tokens: _Count | None = None


class AiShape(_Shape, kw_only=True):
    """A reply; `content` may be missing where it calls tools."""

    content: _Content | None = None
    tool_calls: list[CallShape] | None = None
    invalid_tool_calls: Annotated[list[Any], Meta(max_length=0)] | None = None
    usage_metadata: UsageShape | None = None
    example: bool = False


class ToolShape(_Shape, kw_only=True):
    """The result of a tool call."""

    content: _Content
    tool_call_id: _Name
    status: Literal["success", "error"] = "success"
    artifact: None = None


class RemoveShape(_Shape, kw_only=True):
    """The removal of a message."""

    id: _Name
    content: Literal[""] = ""


Shape = HumanShape | AiShape | SystemShape | ToolShape | RemoveShape
