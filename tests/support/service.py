"""Threadmark as a process of its own: on a free port, over a fresh data directory, killed and started again at will."""

import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from tests.support.daemon import Daemon, PrivateServer
from threadmark.app.access import Scope
from threadmark.app.access.key import DEFAULT_TENANT

__all__ = ["Service"]

TIMEOUT_S = 60.0
PROBE_TIMEOUT_S = 2.0


class Service(PrivateServer):
    """One `threadmark serve`. Use it in a `with`; `environment` adds settings, such as `THREADMARK_AGENTS`.

    `prepare` fills the data directory before the first start.

    `kill` ends the process as a power cut would; `start` brings it back on the same port and data directory.
    """

    def __init__(
        self, environment: Mapping[str, str] | None = None, *, prepare: Callable[[Path], None] | None = None
    ) -> None:
        super().__init__("service")
        self._environment = dict(environment or {})
        if prepare is not None:
            self.data_dir.mkdir(mode=0o700)
            prepare(self.data_dir)

    @property
    def data_dir(self) -> Path:
        """Where the databases, `admin.key` and `effects.jsonl` are."""
        return self.folder / "data"

    @property
    def url(self) -> str:
        """The root of the API."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def key(self) -> str:
        """The key that the first start made; it opens everything."""
        return (self.data_dir / "admin.key").read_text().strip()

    def sdk(self, key: str | None = None, **options: Any) -> LangGraphClient:
        """The unmodified SDK client; use it in an `async with`."""
        return get_client(url=self.url, api_key=key or self.key, timeout=TIMEOUT_S, **options)

    def http(
        self, key: str | None = None, *, headers_too: Mapping[str, str] | None = None, **options: Any
    ) -> httpx.AsyncClient:
        """A plain HTTP client with the key, and with further headers; use it in an `async with`."""
        headers = {"x-api-key": key or self.key, **(headers_too or {})}
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=TIMEOUT_S, **options)

    async def new_key(self, *scopes: Scope, tenant_id: str = DEFAULT_TENANT) -> str:
        """A key with these scopes, made over HTTP."""
        spec = {"label": "test", "scopes": [str(scope) for scope in scopes], "tenant_id": tenant_id}
        async with self.http() as http:
            made = await http.post("/admin/keys", json=spec)
        return str(made.raise_for_status().json()["key"])

    def kill(self) -> None:
        """SIGKILL; returns when the process is gone."""
        self.end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM; returns when the process is gone."""
        self.end(signal.SIGTERM)

    def restart(self) -> None:
        """Kill it and start it again; returns when it answers."""
        self.kill()
        self.start()

    def redeploy(self, **environment: str) -> None:
        """Stop it and start it again with other variables; returns when it answers."""
        self.stop()
        self._environment.update(environment)
        self.start()

    @property
    def environment(self) -> dict[str, str]:
        """The variables that the server is started with."""
        return {
            "HOST": "127.0.0.1",
            "PORT": str(self.port),
            "THREADMARK_DATA_DIR": str(self.data_dir),
            **self._environment,
        }

    def spawn(self) -> Daemon:
        """Start the server process."""
        command = ["/usr/bin/env", *(f"{name}={value}" for name, value in self.environment.items())]
        command += [sys.executable, "-W", "error::ResourceWarning", "-m", "threadmark.app.cli", "serve"]
        return Daemon(command, log=self.folder / "server.log", death_signal=self.death_signal)

    def answers(self) -> bool:
        """Whether `GET /ok` is answered."""
        try:
            return httpx.get(f"{self.url}/ok", timeout=PROBE_TIMEOUT_S).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    @property
    def log(self) -> str:
        """What the process has written so far."""
        path = self.folder / "server.log"
        return path.read_text(errors="replace") if path.exists() else ""
