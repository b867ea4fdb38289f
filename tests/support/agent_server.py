"""A server that runs agents, in the test's own event loop, and the unmodified SDK as its client."""

import json
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.schema import StreamPart

from tests.support.api import make_key
from tests.support.live_server import Live, serve_live
from threadmark.app.access import Scope

__all__ = ["TIMEOUT_S", "Running", "call", "collect", "contents", "parallel", "run_server", "said"]

TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Running:
    """The server, a key that opens its tenant's things, and an SDK client with it."""

    live: Live
    key: str
    sdk: LangGraphClient

    @property
    def url(self) -> str:
        """The root of the API."""
        return self.live.url

    def http(self, key: str | None = None, **options: Any) -> httpx.AsyncClient:
        """A plain client; use it in an `async with`."""
        return httpx.AsyncClient(
            base_url=self.url, headers={"x-api-key": key or self.key}, timeout=TIMEOUT_S, **options
        )

    async def thread(self) -> str:
        """A new thread."""
        return str((await self.sdk.threads.create())["thread_id"])

    async def messages(self, thread_id: str) -> list[dict[str, Any]]:
        """What was said in the thread."""
        state: Any = await self.sdk.threads.get_state(thread_id)
        return list(state["values"].get("messages", []))


@asynccontextmanager
async def run_server(data_dir: Path, environment: Mapping[str, str] | None = None) -> AsyncIterator[Running]:
    """A server with a worker, over a fresh database."""
    async with serve_live(data_dir, environment=dict(environment or {}), with_worker=True) as live:
        key = await make_key(live.resources, Scope.ADMIN)
        async with get_client(url=live.url, api_key=key, timeout=TIMEOUT_S) as sdk:
            yield Running(live, key, sdk)


def said(*lines: str) -> dict[str, Any]:
    """The input of a run: a message of a person, of these lines."""
    return {"messages": [{"role": "user", "content": "\n".join(lines)}]}


def call(tool: str, **arguments: Any) -> str:
    """A line that makes the offline model call a tool."""
    return f"call {tool} {json.dumps(arguments)}"


def parallel(tool: str, **arguments: Any) -> str:
    """A call that runs in parallel with those in the lines beside it."""
    return f"parallel {tool} {json.dumps(arguments)}"


async def collect(stream: AsyncIterable[StreamPart]) -> list[StreamPart]:
    """Every event of a stream, to its end."""
    return [part async for part in stream]


def contents(values: Any) -> list[Any]:
    """What the messages of a state say."""
    return [message["content"] for message in values["messages"]]
