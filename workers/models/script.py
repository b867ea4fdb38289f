"""The offline model's mind: from a chat completion request to the reply it gets. Pure; `docs/offline-model.md` tells
the rules to users.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from threadmark.memory.extraction import ruled
from threadmark.workers.models.strict_json import NotAnObject, parse_object
from threadmark.workers.models.summary_script import offline_summary

__all__ = ["PlannedCall", "PlannedReply", "offline_reply", "words"]

_VERBS = ("call", "parallel")
_WORD = re.compile(r"\S+\s*|\s+")
_RECALL = re.compile(r"^\s*recall:\s*(?P<question>\S.*)", re.IGNORECASE)
_SYSTEM_ROLES = ("system", "developer")


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call that the reply makes; `arguments` is compact JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class PlannedReply:
    """Either text or calls."""

    text: str = ""
    calls: tuple[PlannedCall, ...] = ()

    @property
    def finish_reason(self) -> str:
        """As chat completions name it."""
        return "tool_calls" if self.calls else "stop"


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a script that calls a tool."""

    number: int  #: of the line in the message, from 1
    together: bool
    tool: str
    arguments: str


class _Unrunnable(ValueError):
    """A script with a line that cannot be run; the message is the answer."""


def offline_reply(body: Mapping[str, Any]) -> PlannedReply:
    """The reply to a request: it depends on nothing but the request."""
    messages: Sequence[Mapping[str, Any]] = body["messages"]
    if (summary := offline_summary(messages)) is not None:
        return PlannedReply(text=summary)
    said_at = max((index for index, each in enumerate(messages) if each["role"] == "user"), default=-1)
    text = _text(messages[said_at]) if said_at >= 0 else ""
    offered = [each["function"]["name"] for each in body.get("tools") or ()]
    try:
        lines = _script(text, offered)
    except _Unrunnable as error:
        return PlannedReply(text=str(error))
    if not lines:
        in_view_count = sum(each["role"] not in _SYSTEM_ROLES for each in messages)
        noun = "message" if in_view_count == 1 else "messages"
        return PlannedReply(text=f"You said: {text}\n({in_view_count} {noun} in view)")
    results = [_text(each) for each in messages[said_at + 1 :] if each["role"] == "tool"]
    if len(results) >= len(lines):
        return PlannedReply(text="\n".join(["Done.", *results]))
    return PlannedReply(calls=_calls(_next_group(lines, len(results)), messages))


def words(text: str) -> list[str]:
    """The text cut before each word; the pieces join to the text."""
    return _WORD.findall(text)


def _script(text: str, offered: Sequence[str]) -> list[_Line]:
    """The calls that the message asks for; raises _Unrunnable for the first line that asks for the impossible."""
    lines: list[_Line] = []
    for number, written in enumerate(text.split("\n"), start=1):
        if (asked := _of_memory(number, written, offered)) is not None:
            lines.append(asked)
            continue
        verb, tool, arguments = [*written.split(maxsplit=2), "", "", ""][:3]
        if verb not in _VERBS or not tool:
            continue
        if tool not in offered:
            there = ", ".join(sorted(offered)) or "none"
            raise _Unrunnable(f"Line {number} cannot be run: no tool is named {tool}. Tools here: {there}.")
        try:
            parsed = parse_object(arguments.strip())
        except NotAnObject as error:
            raise _Unrunnable(
                f'Line {number} cannot be run: what follows {tool} is {error}. Write: {verb} {tool} {{"name": value}}'
            ) from error
        lines.append(_Line(number, verb == "parallel", tool, _json_text(parsed)))
    return lines


def _of_memory(number: int, written: str, offered: Sequence[str]) -> _Line | None:
    """The call of a memory tool that the line is, where that tool is offered."""
    if "remember" in offered and (found := next(ruled(written), None)) is not None:
        return _Line(number, False, "remember", _json_text(found))
    if "recall" in offered and (asked := _RECALL.match(written)) is not None:
        return _Line(number, False, "recall", _json_text({"question": asked["question"].strip()}))
    return None


def _next_group(lines: Sequence[_Line], done_count: int) -> list[_Line]:
    """The first line that has no result, and the `parallel` lines right below it if it is one of them."""
    group = [lines[done_count]]
    for line in lines[done_count + 1 :]:
        if not (group[-1].together and line.together and line.number == group[-1].number + 1):
            break
        group.append(line)
    return group


def _calls(group: Sequence[_Line], messages: Sequence[Mapping[str, Any]]) -> tuple[PlannedCall, ...]:
    # The ids follow from the whole view: line 1 of a later script gets another id than line 1 of this one, also
    # where a compaction has made the view as short as it was before.
    view = hashlib.sha256(json.dumps(messages, sort_keys=True).encode()).hexdigest()[:16]
    return tuple(PlannedCall(f"call_{line.number}_{view}", line.tool, line.arguments) for line in group)


def _json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or () if part.get("type") == "text")
