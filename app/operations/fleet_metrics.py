"""What the fleet counts, for Prometheus: read from the database at each scrape."""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import Connection

from threadmark.state import Database, QueueDepth, WorkerSeen, claim_lag_s, list_workers, queue_depths, served_routes

__all__ = ["FleetMetrics"]

TIMEOUT_S = 5.0
_LOG = logging.getLogger("threadmark.http")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figures:
    depths: list[QueueDepth]
    workers: list[WorkerSeen]
    served: frozenset[str]
    lag_s: float


class FleetMetrics(Collector):
    """The same figures in every process. A worker's counts begin at zero with its process."""

    def __init__(self) -> None:
        self._figures: _Figures | None = None

    async def look(self, database: Database) -> None:
        """Read the figures. `threadmark_database_away` and the log report a database that does not answer."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                self._figures = await database.read(_read)
        except Exception:
            # The process's own figures are needed most when the database is away.
            _LOG.warning("the database does not answer: the figures of the fleet are left out", exc_info=True)
            self._figures = None

    def collect(self) -> Iterator[Metric]:
        """The figures that were read last."""
        yield GaugeMetricFamily(
            "threadmark_database_away",
            "1 while the figures of the fleet could not be read.",
            value=self._figures is None,
        )
        if self._figures is not None:
            yield from _queues(self._figures)
            yield from _workers(self._figures)


def _read(connection: Connection) -> _Figures:
    return _Figures(
        depths=queue_depths(connection),
        workers=list_workers(connection),
        served=served_routes(connection),
        lag_s=claim_lag_s(connection),
    )


def _queues(figures: _Figures) -> Iterator[Metric]:
    runs = GaugeMetricFamily(
        "threadmark_runs", "Unfinished runs: what they wait for is `parked`.", labels=("route", "status", "parked")
    )
    unserved = GaugeMetricFamily(
        "threadmark_runs_unserved", "Unfinished runs that no live worker can run.", labels=("route",)
    )
    missing: dict[str, int] = {}
    for each in figures.depths:
        runs.add_metric((each.route, each.status, each.parked or ""), each.count)
        if each.route not in figures.served:
            missing[each.route] = missing.get(each.route, 0) + each.count
    for route, count in missing.items():
        unserved.add_metric((route,), count)
    waiting = [each.oldest_age_s for each in figures.depths if each.status == "pending" and each.parked is None]
    yield runs
    yield unserved
    yield GaugeMetricFamily(
        "threadmark_oldest_pending_age_seconds",
        "Since the oldest pending run was accepted that is not parked.",
        value=max(waiting, default=0.0),
    )
    yield GaugeMetricFamily(
        "threadmark_claim_lag_seconds",
        "For how long the run has been claimable that has waited longest for nothing but a worker.",
        value=figures.lag_s,
    )


def _workers(figures: _Figures) -> Iterator[Metric]:
    claims = CounterMetricFamily("threadmark_claims", "Runs claimed, by worker process.", labels=("worker",))
    orphans = CounterMetricFamily(
        "threadmark_orphans_taken", "Runs taken over from dead workers, by worker process.", labels=("worker",)
    )
    lag = GaugeMetricFamily(
        "threadmark_worker_loop_lag_seconds", "How long the event loop kept a call waiting.", labels=("worker",)
    )
    age = GaugeMetricFamily(
        "threadmark_worker_loop_age_seconds",
        "Since a long-lived task of a worker completed a round.",
        labels=("worker", "loop"),
    )
    errors = CounterMetricFamily(
        "threadmark_worker_loop_errors", "Rounds of a long-lived task that failed.", labels=("worker", "loop")
    )
    for each in figures.workers:
        for loop in each.loops:
            errors.add_metric((each.worker_id, loop.name), loop.error_count)
            if loop.age_s is not None:
                age.add_metric((each.worker_id, loop.name), loop.age_s)
        claims.add_metric((each.worker_id,), each.claim_count)
        orphans.add_metric((each.worker_id,), each.orphan_count)
        lag.add_metric((each.worker_id,), each.loop_lag_s)
    yield GaugeMetricFamily(
        "threadmark_workers",
        "Workers whose lease holds.",
        value=sum(each.lease_left_s > 0 for each in figures.workers),
    )
    yield claims
    yield orphans
    yield lag
    yield age
    yield errors
