"""The API on a real socket, in the test's own event loop: for what a client in the same process cannot see."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.support.api import make_key
from tests.support.templates import migrate_anew
from threadmark.app.access import Scope
from threadmark.app.factory import create_app
from threadmark.app.resources import Resources
from threadmark.app.server import Server, listen, url_of
from threadmark.workers.settings.settings import Settings
from threadmark.workers.wiring import open_resources

__all__ = ["Live", "serve_live"]

TIMEOUT_S = 30.0


@dataclass
class Live:
    """A server that is ready. `serving` ends when the server has."""

    url: str
    server: Server
    resources: Resources
    serving: "asyncio.Task[None]"

    async def http(self, *scopes: Scope) -> httpx.AsyncClient:
        """A client with a new key; use it in an `async with`."""
        key = await make_key(self.resources, *scopes)
        return httpx.AsyncClient(base_url=self.url, headers={"x-api-key": key}, timeout=TIMEOUT_S)


@asynccontextmanager
async def serve_live(
    data_dir: Path,
    *,
    routes: Iterable[Any] = (),
    environment: dict[str, str] | None = None,
    monotonic: Callable[[], float] = time.monotonic,
    with_worker: bool = False,
) -> AsyncIterator[Live]:
    """A server on a free port, with further routes if a test brings some, and with a worker if it asks for one."""
    settings = Settings.from_environment({"THREADMARK_DATA_DIR": str(data_dir), "PORT": "0", **(environment or {})})
    migrate_anew(settings)
    is_ready = asyncio.Event()
    with listen(settings.host, settings.port) as listening:
        async with open_resources(settings, with_worker=with_worker) as wired:
            resources = Resources(wired=wired, monotonic=monotonic)
            app = create_app(resources, extra_routes=list(routes))
            server = Server(app, stopping=resources.stopping, on_ready=is_ready.set)
            serving = asyncio.create_task(server.serve(sockets=[listening]))
            try:
                await asyncio.wait_for(is_ready.wait(), TIMEOUT_S)
                yield Live(url_of(listening), server, resources, serving)
            finally:
                server.should_exit = True
                resources.stopping.set()
                await asyncio.wait_for(serving, TIMEOUT_S)
