"""Token counts of a request and of a reply, by a stated rule over exact counts of each text.

A message costs 3 tokens and those of its role, its text, its name (and 1 more) and of each call's name and arguments;
a reply is primed with 3. A tool costs the tokens of its definition as compact JSON. A reply costs the tokens of its
text and of each call's name and arguments. Images, audio and files cost nothing here: only their server can tell.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from threadmark.workers.tokens import count_tokens

__all__ = ["reply_token_count", "request_token_count"]

_MESSAGE, _NAME, _PRIMING = 3, 1, 3


def request_token_count(messages: Iterable[Mapping[str, Any]], tools: Iterable[Mapping[str, Any]] = ()) -> int:
    """Tokens of a chat completion request."""
    written = [json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in tools]
    return _PRIMING + sum(map(_message, messages)) + sum(map(count_tokens, written))


def reply_token_count(text: str, calls: Iterable[tuple[str, str]]) -> int:
    """Tokens of a reply; `calls` are pairs of a name and arguments in JSON."""
    return count_tokens(text) + sum(count_tokens(name) + count_tokens(arguments) for name, arguments in calls)


def _message(message: Mapping[str, Any]) -> int:
    count = _MESSAGE + count_tokens(message["role"]) + sum(map(count_tokens, _texts(message.get("content"))))
    if message.get("name"):
        count += _NAME + count_tokens(message["name"])
    calls = [each["function"] for each in message.get("tool_calls") or ()]
    return count + sum(count_tokens(each["name"]) + count_tokens(each["arguments"]) for each in calls)


def _texts(content: Any) -> list[str]:
    if content is None:
        return []
    if isinstance(content, str):
        return [content]
    return [part.get("text", "") for part in content if part.get("type") == "text"]
