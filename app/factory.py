"""The application, as a table of contents."""

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from litestar import Litestar
from litestar.di import Provide
from litestar.types import ControllerRouterHandler

from threadmark.app.access import Caller, Gate, KeyRing, check_declared
from threadmark.app.access.key_store import cursor_secret
from threadmark.app.access.token_buckets import Buckets
from threadmark.app.edge import Cors, Drain, HangUp, Shield, Trace
from threadmark.app.listing.cursors import CursorSigner
from threadmark.app.listing.parameters import learn_parameters, refuse_unknown
from threadmark.app.openapi.document import config
from threadmark.app.operations.loop_metrics import LoopMetrics
from threadmark.app.operations.metrics import HttpMetrics, RedisMetrics
from threadmark.app.operations.recall_metrics import RecallMetrics
from threadmark.app.requests import errors
from threadmark.app.requests.request import ApiRequest
from threadmark.app.requests.request_key import provide_request_key
from threadmark.app.requests.trace_parent import provide_trace_parent
from threadmark.app.resources import Resources
from threadmark.app.routes.administration import durability, fleet, keys, service, tasks
from threadmark.app.routes.compactions import (
    compaction_jobs,
    compaction_policies,
    compactions,
    drop_recalls,
    drops,
    views,
)
from threadmark.app.routes.conversations import (
    assistants,
    journal,
    run_control,
    runs,
    stateless_runs,
    states,
    steps,
    threads,
    waits,
)
from threadmark.app.routes.memories import memories, memory_archive, memory_changes, recalls, store
from threadmark.app.version import VERSION
from threadmark.workers.schema_wait import when_reachable

__all__ = ["create_app"]

REQUEST_ID_BYTES = 16


def create_app(resources: Resources, *, extra_routes: Sequence[ControllerRouterHandler] = ()) -> Litestar:
    """The ASGI application over `resources`, which stay the caller's to close."""
    settings, monotonic = resources.settings, resources.monotonic
    ring = KeyRing(resources.database, clock=resources.now, monotonic=monotonic)
    gate = Gate(
        ring,
        Buckets(per_s=settings.rate_per_s, burst=settings.rate_burst),
        monotonic=monotonic,
        answer_s=settings.answer_s,
    )

    @asynccontextmanager
    async def lifespan(app: Litestar) -> AsyncIterator[None]:
        app.state.signer = CursorSigner(await when_reachable(lambda: resources.database.read(cursor_secret)))
        yield
        await ring.close()

    app = Litestar(
        route_handlers=[
            *service.ROUTES,
            *fleet.ROUTES,
            *keys.ROUTES,
            *assistants.ROUTES,
            *threads.ROUTES,
            *states.ROUTES,
            *journal.ROUTES,
            *waits.ROUTES,
            *runs.ROUTES,
            *run_control.ROUTES,
            *stateless_runs.ROUTES,
            *recalls.ROUTES,
            *steps.ROUTES,
            *memories.ROUTES,
            *memory_changes.ROUTES,
            *memory_archive.ROUTES,
            *store.ROUTES,
            *durability.ROUTES,
            *tasks.ROUTES,
            *compactions.ROUTES,
            *compaction_jobs.ROUTES,
            *compaction_policies.ROUTES,
            *views.ROUTES,
            *drop_recalls.ROUTES,
            *drops.ROUTES,
            *extra_routes,
        ],
        middleware=[HangUp],
        guards=[gate.admit, refuse_unknown],
        dependencies={
            "caller": Provide(_caller, sync_to_thread=False),
            "keys": Provide(lambda: ring, sync_to_thread=False),
            "resources": Provide(lambda: resources, sync_to_thread=False),
            "signer": Provide(_signer, sync_to_thread=False),
            "request_key": Provide(provide_request_key),
            "trace_parent": Provide(provide_trace_parent),
        },
        exception_handlers=errors.handlers(),
        request_class=ApiRequest,
        request_max_body_size=settings.body_bytes_max,
        openapi_config=config(VERSION),
        lifespan=[lifespan],
        logging_config=None,
        debug=False,
    )
    resources.metrics.register(resources.fleet_metrics)
    resources.metrics.register(LoopMetrics(resources.wired.supervisor))
    resources.metrics.register(RecallMetrics(resources.wired.recollection))
    if resources.wired.outages:
        resources.metrics.register(RedisMetrics(resources.wired.outages))
    check_declared(app)
    learn_parameters(app)
    # Around the router and not among its middleware, which a request that meets no route never passes.
    guarded = Cors(app.asgi_handler, allowed_origins=settings.allowed_origins)
    app.asgi_handler = Trace(
        Drain(Shield(guarded, allowed_hosts=settings.allowed_hosts)),
        metrics=HttpMetrics(resources.metrics),
        trusted_proxies=settings.trusted_proxies,
        monotonic=monotonic,
        new_request_id=lambda: secrets.token_hex(REQUEST_ID_BYTES),
    )
    return app


def _caller(request: ApiRequest) -> Caller:
    return request.caller


def _signer(request: ApiRequest) -> CursorSigner:
    signer: CursorSigner = request.app.state.signer
    return signer
