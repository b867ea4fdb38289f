"""What the application is built from. The code that opened these closes them, after the application has ended."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from prometheus_client import CollectorRegistry

from threadmark.app.access.seats import Seat, Seats
from threadmark.app.keyed_lock import KeyedLock
from threadmark.app.operations.fleet_metrics import FleetMetrics
from threadmark.app.operations.readiness import Readiness
from threadmark.state import Database
from threadmark.workers import wiring
from threadmark.workers.settings.settings import Settings

__all__ = ["Resources"]

#: A memory that hangs must not delay the probes of load balancers.
MEMORY_TIMEOUT_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What the application needs and does not make.

    Attributes:
        wired: What every process of the deployment has open: databases, journal, agents, the desk.
        monotonic: Seconds that never step back.
        metrics: Where metrics are counted; one registry per application.
        fleet_metrics: What `/metrics` last read of the fleet.
        readiness: What `/ready` last found.
        memory_readiness: What it last found of memory, without which the server is ready all the same.
        compactions: The seats of requests that wait for a compaction.
        streams: The seats of answers that stay open.
        imports, exports: The seats of requests that import and that export memory.
        thread_locks: Where requests wait that write to one thread.
        request_locks: Where changes of memory wait for an equal one (tenant, Idempotency-Key) that came first.
        stopping: Set when the server begins to stop: streams end then, instead of delaying the stop.
    """

    wired: wiring.Resources
    monotonic: Callable[[], float] = time.monotonic
    metrics: CollectorRegistry = field(default_factory=CollectorRegistry)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    thread_locks: KeyedLock = field(default_factory=KeyedLock)
    request_locks: KeyedLock = field(default_factory=KeyedLock)
    fleet_metrics: FleetMetrics = field(default_factory=FleetMetrics)
    readiness: Readiness = field(default_factory=Readiness)
    memory_readiness: Readiness = field(default_factory=lambda: Readiness(timeout_s=MEMORY_TIMEOUT_S, what="memory"))

    compactions: Seats = field(
        default_factory=lambda: Seats("compactions_per_tenant", "compactions_per_process", retry_after_s=5.0)
    )

    streams: Seats = field(default_factory=lambda: Seats("open_streams", retry_after_s=5.0))
    imports: Seats = field(default_factory=lambda: Seats("memory_imports", retry_after_s=5.0))
    exports: Seats = field(default_factory=lambda: Seats("memory_exports", retry_after_s=5.0))

    @property
    def settings(self) -> Settings:
        """As read at the start."""
        return self.wired.settings

    @property
    def database(self) -> Database:
        """The state database; API keys live there too."""
        return self.wired.database

    def take_compaction(self, tenant_id: str) -> Seat:
        """A seat for a compaction that a request waits for. Raises BoundReached."""
        settings = self.settings
        return self.compactions.take(
            tenant_id,
            count_max=settings.compactions_per_tenant_max,
            whole_count_max=settings.compactions_per_process_max,
        )

    def take_stream(self, tenant_id: str) -> Seat:
        """A seat for an answer that stays open. Raises BoundReached."""
        return self.streams.take(tenant_id, count_max=self.settings.open_streams_max)

    def take_import(self, tenant_id: str) -> Seat:
        """A seat for an import of memory, while its body arrives and its lines are kept. Raises BoundReached."""
        return self.imports.take(tenant_id, count_max=self.settings.memory_imports_max)

    def take_export(self, tenant_id: str) -> Seat:
        """A seat for an export of memory, until the whole of it is read. Raises BoundReached."""
        return self.exports.take(tenant_id, count_max=self.settings.memory_exports_max)

    def now(self) -> datetime:
        """The present, an aware UTC instant."""
        return self.wired.now()
