"""The server itself: whether it is there, what it is, what it counts, and its API as a document."""

from typing import Any

import msgspec
from litestar import Request, Response, get
from litestar.openapi import ResponseSpec
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from threadmark.app.access import PUBLIC, Scope, needs
from threadmark.app.http.problem import MEDIA_TYPE
from threadmark.app.openapi.document import document_of
from threadmark.app.pools import ANSWERS
from threadmark.app.requests import dependencies
from threadmark.app.version import VERSION

__all__ = ["ROUTES", "Info", "Ok"]

_DOCUMENT = {200: ResponseSpec(dict[str, Any], description="The document.", generate_examples=False)}


class Ok(msgspec.Struct, frozen=True):
    """The server takes requests."""

    ok: bool = True


class Flags(msgspec.Struct, frozen=True):
    """What of the dialect this server speaks."""

    assistants: bool = True
    crons: bool = False
    langsmith: bool = False
    langsmith_tracing_replicas: bool = False


class Host(msgspec.Struct, frozen=True):
    """Who runs the server."""

    kind: str = "self-hosted"


class Info(msgspec.Struct, frozen=True):
    """What the server is. `langgraph_py_version` is what clients of the dialect look for; there is none here."""

    version: str = VERSION
    server: str = "threadmark"
    langgraph_py_version: str | None = None
    flags: Flags = Flags()
    host: Host = Host()


@get("/ok", opt=PUBLIC, sync_to_thread=False)
def ok() -> Ok:
    """Whether the server takes requests; `/ready` says whether its database does."""
    return Ok()


@get("/info", opt=needs(Scope.READ), sync_to_thread=False)
def info() -> Info:
    """What this server is and which parts of the dialect it speaks."""
    return Info()


@get("/metrics", opt=needs(Scope.ADMIN), media_type="text/plain")
async def metrics(resources: dependencies.Resources) -> Response[bytes]:
    """What the process and the fleet count, for Prometheus. The figures are of all tenants together."""
    await resources.fleet_metrics.look(resources.database)
    return Response(generate_latest(resources.metrics), media_type=CONTENT_TYPE_LATEST)


@get("/openapi.json", opt=needs(Scope.READ), responses=_DOCUMENT)
async def openapi(request: Request[Any, Any, Any]) -> Response[bytes]:
    """This API, as an OpenAPI 3.1 document."""
    kept = request.app.state
    if "document" not in kept:
        # Half a second of work, once, beside the event loop.
        kept.document = await ANSWERS.run(lambda: msgspec.json.encode(document_of(request.app)))
    return Response(kept.document, media_type=MEDIA_TYPE)


ROUTES = [ok, info, metrics, openapi]
