"""The API in a test: an application over a database of its own, keys for it, and clients that carry them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from litestar import Litestar

from tests.support.described import Document
from tests.support.templates import migrate_anew
from threadmark.app.access import Scope, Token
from threadmark.app.access.key import DEFAULT_TENANT
from threadmark.app.access.key_store import add_key
from threadmark.app.factory import create_app
from threadmark.app.openapi.document import document_of
from threadmark.app.resources import Resources
from threadmark.app.schema import migrate_for_start
from threadmark.workers.settings.settings import Settings
from threadmark.workers.wiring import open_resources

__all__ = ["Api", "Hands", "make_key", "open_api"]

BASE_URL = "http://threadmark.local"
_DOCUMENTS: list[Document] = []


@dataclass
class Hands:
    """A clock that stands still until a test moves it: `now` is what clocks say, `passed_s` what has gone by."""

    began_at: datetime = datetime(2026, 11, 29, 12, tzinfo=UTC)
    passed_s: float = 0.0

    def now(self) -> datetime:
        """The present, an aware UTC instant."""
        return self.began_at + timedelta(seconds=self.passed_s)

    def monotonic(self) -> float:
        """Seconds that never step back."""
        return 1_000.0 + self.passed_s

    def pass_s(self, seconds: float) -> None:
        """Let time go by."""
        self.passed_s += seconds


async def make_key(
    resources: Resources,
    *scopes: Scope,
    tenant_id: str = DEFAULT_TENANT,
    label: str = "test",
    expires_at: datetime | None = None,
) -> str:
    """A new key, straight into the database."""
    token = Token.fresh()
    unit = partial(
        add_key,
        token=token,
        tenant_id=tenant_id,
        label=label,
        scopes=frozenset(scopes),
        now=resources.now(),
        expires_at=expires_at,
    )
    await resources.database.write(unit)
    return token.text


@dataclass
class Api:
    """An application, its database and its clock."""

    app: Litestar
    resources: Resources
    hands: Hands
    _anonymous: httpx.AsyncClient | None = None

    async def key(
        self, *scopes: Scope, tenant_id: str = DEFAULT_TENANT, label: str = "test", expires_at: datetime | None = None
    ) -> str:
        """A new key, straight into the database."""
        return await make_key(self.resources, *scopes, tenant_id=tenant_id, label=label, expires_at=expires_at)

    @property
    def client(self) -> httpx.AsyncClient:
        """A client without a key; requests carry what the test gives them."""
        assert self._anonymous is not None
        return self._anonymous

    async def call(self, method: str, path: str, key: str | None = None, **request: Any) -> Any:
        """The response to one request, with this key."""
        headers = dict(request.pop("headers", {}))
        if key is not None:
            headers["x-api-key"] = key
        return await self.client.request(method, path, headers=headers, **request)


@asynccontextmanager
async def open_api(
    data_dir: Path,
    *,
    routes: Iterable[Any] = (),
    environment: dict[str, str] | None = None,
    with_memory: bool = True,
) -> AsyncIterator[Api]:
    """An application over a fresh SQLite database in `data_dir`, with further routes if a test brings some.

    Without memory it is served as by a start that cannot reach the database of memories.
    """
    settings = Settings.from_environment({"THREADMARK_DATA_DIR": str(data_dir), **(environment or {})})
    hands = Hands()
    (migrate_anew if with_memory else migrate_for_start)(settings)
    async with open_resources(settings, with_worker=False, now=hands.now) as wired:
        resources = Resources(wired=wired, monotonic=hands.monotonic)
        api = Api(create_app(resources, extra_routes=list(routes)), resources, hands)
        # In the test's own loop, as a server has one: what requests and background share is made for one loop.
        transport = httpx.ASGITransport(app=api.app, raise_app_exceptions=False)  # type: ignore[arg-type]
        hooks = {"response": [_as_described(resources)]}
        async with (
            _alive(api.app),
            httpx.AsyncClient(transport=transport, base_url=BASE_URL, event_hooks=hooks) as client,
        ):
            api._anonymous = client
            yield api


def _as_described(resources: Resources) -> Callable[[httpx.Response], Awaitable[None]]:
    """What fails a test whose request is answered in another way than the API's document says."""

    async def check(response: httpx.Response) -> None:
        await response.aread()
        # Beside the loop, of which some tests measure how long a handler holds it.
        await asyncio.to_thread(_document(resources).check, response)

    return check


def _document(resources: Resources) -> Document:
    """The document, made once in a process, because it takes a while.

    It is that of an application without the routes of a test: which test came first in the process would otherwise
    decide what it describes.
    """
    if not _DOCUMENTS:
        plain = create_app(Resources(wired=resources.wired))
        _DOCUMENTS.append(Document(document_of(plain)))
    return _DOCUMENTS[0]


@asynccontextmanager
async def _alive(app: Litestar) -> AsyncIterator[None]:
    """The application's lifespan, in a task of its own: a fixture may be ended by another task than began it."""
    is_up, is_over = asyncio.Event(), asyncio.Event()

    async def live() -> None:
        async with app.lifespan():
            is_up.set()
            await is_over.wait()

    living = asyncio.create_task(live())
    waiting = asyncio.create_task(is_up.wait())
    await asyncio.wait([living, waiting], return_when=asyncio.FIRST_COMPLETED)
    try:
        yield
    finally:
        waiting.cancel()
        is_over.set()
        await living
