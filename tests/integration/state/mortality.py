"""A worker that may die at any point of its work, which is counted: before and after each call of anything outside."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from sqlalchemy import Connection

from tests.integration.state.stage import Stage
from threadmark.state import Database, Journal
from threadmark.state.batches.append_batch import Append
from threadmark.workers.agents.tools import Tool
from threadmark.workers.models import ModelReply, ModelRequest
from threadmark.workers.turn.turn_parts import TurnParts

__all__ = ["Death", "Fate", "mortal"]

T = TypeVar("T")


class Death(BaseException):
    """The worker's process is gone: nothing of it catches this."""


@dataclass
class Fate:
    """Counts the points of a story, and lets the worker die at one of them (None: never)."""

    at: int | None = None
    count: int = 0
    name: str = ""
    is_dead: bool = False

    def point(self, name: str) -> None:
        """One point; the dead do nothing any more."""
        if self.is_dead:
            raise Death
        self.count += 1
        if self.count == self.at:
            self.name, self.is_dead = name, True
            raise Death


class _MortalDatabase(Database):
    """A database that the worker may die before or after each call of."""

    def __init__(self, inner: Database, fate: Fate) -> None:
        self._inner = inner
        self._fate = fate

    async def write(self, unit: Callable[[Connection], T], *, thread: int | None = None, repeatable: bool = False) -> T:
        self._fate.point("before a write")
        result = await self._inner.write(unit, thread=thread, repeatable=repeatable)
        self._fate.point("after a write")
        return result

    async def append(self, append: Append) -> int | None:
        self._fate.point("before an append")
        result = await self._inner.append(append)
        self._fate.point("after an append")
        return result

    async def read(self, query: Callable[[Connection], T]) -> T:
        self._fate.point("before a read")
        result = await self._inner.read(query)
        self._fate.point("after a read")
        return result


def mortal(stage: Stage, fate: Fate, tools: Sequence[Tool]) -> Stage:
    """The stage with these tools and a worker that meets its fate at database, model and tools."""
    database = _MortalDatabase(stage.store.database, fate)
    ask = stage.model.reply

    async def reply(request: ModelRequest, on_delta: Callable[[str], None]) -> ModelReply:
        fate.point("before the model")
        answer = await ask(request, on_delta)
        fate.point("after the model")
        return answer

    stage.model.reply = reply  # type: ignore[method-assign]
    parts: TurnParts = replace(stage.parts, database=database, journal=Journal(database))
    agent = replace(stage.agent, tools=[_mortal_tool(each, fate) for each in tools])
    return replace(stage, parts=parts, agent=agent)


def _mortal_tool(tool: Tool, fate: Fate) -> Tool:
    function = tool.function

    async def perform(**arguments: Any) -> Any:
        fate.point(f"before {tool.name}")
        result = await function(**arguments)
        fate.point(f"after {tool.name}")
        return result

    return replace(tool, function=perform)
