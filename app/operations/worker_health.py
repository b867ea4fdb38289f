"""What a worker process answers on its health port: `/ok`, `/ready` and `/metrics`, for probes alone."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import msgspec
import uvicorn
from prometheus_client import CollectorRegistry, generate_latest

from threadmark.app.operations.loop_metrics import LoopMetrics
from threadmark.app.server import listen
from threadmark.workers.supervisor import Supervisor
from threadmark.workers.wiring import Resources

__all__ = ["health_of", "serve_health"]

_Message: TypeAlias = MutableMapping[str, Any]
_Send: TypeAlias = Callable[[_Message], Awaitable[None]]
_App: TypeAlias = Callable[[MutableMapping[str, Any], Callable[[], Awaitable[_Message]], _Send], Awaitable[None]]
_JSON, _TEXT = b"application/json", b"text/plain; version=0.0.4; charset=utf-8"


class _Quiet(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the worker's."""
        yield


@asynccontextmanager
async def serve_health(host: str, port: int, resources: Resources) -> AsyncIterator[None]:
    """Answer on the address for as long as the block lasts. Raises CannotListen."""
    with listen(host, port) as listening:
        server = _Quiet(
            uvicorn.Config(
                health_of(resources.supervisor),
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
            )
        )
        serving = asyncio.create_task(server.serve(sockets=[listening]), name="health")
        try:
            yield
        finally:
            server.should_exit = True
            await asyncio.wait([serving])


def health_of(supervisor: Supervisor) -> _App:
    """The ASGI application of one worker process."""
    registry = CollectorRegistry()
    registry.register(LoopMetrics(supervisor))

    def answer(path: str) -> tuple[int, bytes, bytes]:
        if path == "/ok":
            return 200, _JSON, b'{"ok":true}'
        if path == "/ready":
            reasons = supervisor.troubles()
            body = msgspec.json.encode({"ready": not reasons, "reasons": reasons})
            return (503 if reasons else 200), _JSON, body
        if path == "/metrics":
            return 200, _TEXT, generate_latest(registry)
        return 404, _JSON, msgspec.json.encode({"error": "not_found", "allowed": ["/ok", "/ready", "/metrics"]})

    async def app(scope: MutableMapping[str, Any], _receive: Callable[[], Awaitable[_Message]], send: _Send) -> None:
        status, kind, body = answer(scope["path"])
        headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    return app
