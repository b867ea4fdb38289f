"""A model that gives the replies of a test, in order, through the client that real models are reached with."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from threadmark.workers.models.script import PlannedCall, PlannedReply

__all__ = ["ScriptExhausted", "ScriptedCall", "ScriptedModel", "call"]


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A call that the model asks for."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


#: A text, a call, or several calls at once.
Reply: TypeAlias = str | ScriptedCall | Sequence[ScriptedCall]


class ScriptExhausted(AssertionError):
    """The model was called more often than the script has replies."""

    def __init__(self, reply_count: int) -> None:
        super().__init__(f"the script has {reply_count} replies, and the model was asked for another one")


def call(tool: str, /, **arguments: Any) -> ScriptedCall:
    """A call of a tool by its name.

    >>> call("add", a=1, b=2)
    ScriptedCall(tool='add', arguments={'a': 1, 'b': 2})
    """
    return ScriptedCall(tool, arguments)


class ScriptedModel:
    """Replies in order; `requests` is what the model was sent, each as a chat completions request.

    >>> model = ScriptedModel(call("add", a=1, b=2), "That makes 3.")
    >>> model.unused
    2
    """

    def __init__(self, *replies: Reply) -> None:
        self._replies = replies
        self.requests: list[Mapping[str, Any]] = []

    @property
    def unused(self) -> int:
        """Replies that the model was not asked for."""
        return max(len(self._replies) - len(self.requests), 0)

    @property
    def was_exhausted(self) -> bool:
        """Whether the model was asked for more than the script has."""
        return len(self.requests) > len(self._replies)

    @property
    def reply_count(self) -> int:
        """Replies of the script."""
        return len(self._replies)

    def answer(self, body: Mapping[str, Any]) -> PlannedReply:
        """The next reply, to a chat completions request. Raises ScriptExhausted."""
        number = len(self.requests)
        self.requests.append(body)
        if number >= len(self._replies):
            raise ScriptExhausted(len(self._replies))
        reply = self._replies[number]
        if isinstance(reply, str):
            return PlannedReply(text=reply)
        calls = [reply] if isinstance(reply, ScriptedCall) else reply
        return PlannedReply(
            calls=tuple(
                PlannedCall(f"call_{number}_{index}", each.tool, json.dumps(dict(each.arguments), ensure_ascii=False))
                for index, each in enumerate(calls)
            )
        )
