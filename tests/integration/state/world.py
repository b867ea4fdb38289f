"""The outside world of the machine's runs, and a model that follows the script in its messages."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.support.factories import USAGE, ScriptedModel
from threadmark.state import ToolCall
from threadmark.workers.agents.tool_context import ToolContext
from threadmark.workers.agents.tools import Effect, Tool, tool
from threadmark.workers.models import ModelReply, ModelRequest, to_openai

__all__ = ["LETTERS", "Obedient", "World"]

#: What a letter of a message makes the model call, one turn each.
LETTERS = {"l": ["look"], "m": ["mail"], "p": ["pay"], "a": ["ask"], "b": ["mail", "ask"], "d": ["pay", "look"]}


@dataclass
class World:
    """Remembers by which key it was reached, for what, and how often."""

    reached: dict[str, tuple[str, str]] = field(default_factory=dict)
    count: dict[str, int] = field(default_factory=dict)
    collisions: list[str] = field(default_factory=list)

    def reach(self, name: str, what: str, context: ToolContext) -> str:
        """One effect; a key that was used for another call is what must never be."""
        key, effect = context.idempotency_key, (name, what)
        if self.reached.setdefault(key, effect) != effect:
            self.collisions.append(f"{effect} came under the key of {self.reached[key]}")
        self.count[key] = self.count.get(key, 0) + 1
        return f"{name} {what}"

    @property
    def tools(self) -> list[Tool]:
        """A tool of each effect, and one that asks a person."""

        @tool(effect=Effect.PURE)
        async def look(what: str) -> str:
            """Look."""
            return f"look {what}"

        @tool(effect=Effect.KEYED)
        async def mail(what: str, context: ToolContext) -> str:
            """Mail."""
            return self.reach("mail", what, context)

        @tool(effect=Effect.ONCE)
        async def pay(what: str, context: ToolContext) -> str:
            """Pay."""
            return self.reach("pay", what, context)

        @tool(effect=Effect.ONCE, needs_approval=True)
        async def ask(what: str, context: ToolContext) -> str:
            """Pay, if a person agrees."""
            return self.reach("ask", what, context)

        return [look, mail, pay, ask]


class Obedient(ScriptedModel):
    """Calls what the letters of the last message of a person say, one after the other, and is done then."""

    async def reply(self, request: ModelRequest, on_delta: Callable[[str], None]) -> ModelReply:
        """The reply that the transcript asks for."""
        to_openai(request.instructions, request.messages)
        said = max((index for index, each in enumerate(request.messages) if each.type == "human"), default=-1)
        letters = str(request.messages[said].content) if said >= 0 else ""
        turn = sum(each.type == "ai" for each in request.messages[said + 1 :])
        names: list[str] = LETTERS[letters[turn]] if turn < len(letters) else []
        where = len(request.messages)
        calls: list[Any] = [
            ToolCall(id=f"call-{where}-{index}", name=name, arguments={"what": f"{letters}-{turn}-{where}-{index}"})
            for index, name in enumerate(names)
        ]
        text = f"turn {turn}"
        on_delta(text)
        return ModelReply(
            text=text, tool_calls=tuple(calls), usage=USAGE, finish_reason="stop", model="obedient", cuts=(len(text),)
        )
