"""The work that is measured: turns of twelve steps with results of 1 KiB, through the whole turn engine.

Claim, fold, next action, flush, settle: all of it. Only the model and the tool are instant, so what is measured is the
engine and the disk.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from threadmark.state import (
    TURN_READER_COUNT,
    Claim,
    Database,
    Journal,
    JournalWriter,
    Message,
    RunRequest,
    RunSubmission,
    ToolCall,
    ToolReturned,
    Usage,
    accept,
    claim,
    migrate,
    open_engine,
    register,
)
from threadmark.workers.agents.agent import ChatAgent, Limits
from threadmark.workers.agents.tools import Effect, tool
from threadmark.workers.feeds.local_feed import LocalFeed
from threadmark.workers.models import ChatModel, ModelReply, ModelRequest
from threadmark.workers.turn.turn import Turn
from threadmark.workers.turn.turn_parts import TurnParts

__all__ = ["AGENT", "PAYLOAD", "RESULT", "STEP_COUNT", "Bench", "returned"]

STEP_COUNT = 12
ROUND_COUNT = 60
CONCURRENT_COUNT = 32
RESULT = {"text": "x" * 1000, "n": 1}
PAYLOAD = json.dumps(RESULT).encode()


@tool(effect=Effect.PURE)
async def fetch() -> dict[str, Any]:
    """Return 1 KiB."""
    return dict(RESULT)


class InstantModel:
    """Asks for `fetch` until the turn has its steps, then stops."""

    def __init__(self, step_count: int) -> None:
        self.step_count = step_count

    async def reply(self, request: ModelRequest, on_delta: Callable[[str], None]) -> ModelReply:
        calls = sum(1 for each in request.messages if each.type == "tool")
        more = calls < self.step_count // 2
        return ModelReply(
            text="" if more else "done",
            tool_calls=(ToolCall(f"call-{calls}", "fetch", {}),) if more else (),
            usage=Usage(10, 10),
            finish_reason="tool_calls" if more else "stop",
            model="instant",
        )


AGENT = ChatAgent(name="bench", tools=(fetch,), limits=Limits(step_count_max=100_000))


class Bench:
    """A database, and a worker's desk over it."""

    def __init__(self, url: str, folder: Path) -> None:
        engine = open_engine(url, write=True)
        migrate(engine)
        with engine.begin() as connection:
            register(connection, "bench", 3600, "{}")
        engine.dispose()
        self.model = InstantModel(STEP_COUNT)
        self.database = Database.open(url, reader_count=TURN_READER_COUNT)
        self.parts = TurnParts(
            database=self.database,
            journal=Journal(self.database),
            model=cast(ChatModel, self.model),
            feed=LocalFeed(),
            data_dir=folder,
            now=lambda: datetime.now(UTC),
        )

    async def submission(self) -> None:
        """Accept one run on a thread of its own."""
        message = Message(id="m", type="human", content="go")
        submission = RunSubmission(
            tenant_id="bench",
            thread_id=None,
            assistant="bench",
            assistant_id="bench",
            request=RunRequest(messages=(message,)),
            metadata={},
        )
        now_us = self.parts.now_us()
        await self.database.write(lambda connection: accept(connection, submission, now_us))

    async def claim(self, count: int) -> list[Claim]:
        """Claim runs as a worker does."""
        return await self.database.write(lambda connection: claim(connection, "bench", ["bench"], count))

    async def turn(self) -> None:
        """Claim one run and take its turn."""
        (claimed,) = await self.claim(1)
        await Turn(self.parts, claimed, AGENT).take()

    async def writer(self) -> JournalWriter:
        """The hand of a fresh claim: the journal alone, without the engine."""
        await self.submission()
        (claimed,) = await self.claim(1)
        return JournalWriter(self.database, claimed.thread, run=claimed.run.number, now_us=self.parts.now_us)


def returned(number: int) -> ToolReturned:
    """The entry of a step with a result of 1 KiB."""
    return ToolReturned(
        step_key=cast(Any, f"tool-{number}-0"),
        call_id=f"call-{number}",
        tool="fetch",
        outcome="ok",
        message_id=f"msg-{number}",
        value=RESULT,
    )
