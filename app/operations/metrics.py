"""What is counted about HTTP and about Redis, for Prometheus.

One registry per application, so two in one process do not mix.
"""

from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from threadmark.workers.redis.redis_link import Outage

__all__ = ["HttpMetrics", "RedisMetrics"]

_DURATIONS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class HttpMetrics:
    """Requests by method, route template and status. Tenants and paths are no labels: they grow without a bound."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._ended = Counter(
            "threadmark_http_requests", "Requests answered.", ("method", "route", "status"), registry=registry
        )
        self._durations = Histogram(
            "threadmark_http_request_duration_seconds",
            "Time from the request's head to the end of its answer; streams count whole.",
            ("method", "route"),
            buckets=_DURATIONS_S,
            registry=registry,
        )
        self._open = Gauge("threadmark_http_requests_open", "Requests not answered yet.", registry=registry)

    def begun(self) -> None:
        """A request came."""
        self._open.inc()

    def ended(self, *, method: str, route: str, status: int, duration_s: float) -> None:
        """A request that had begun is over."""
        self._open.dec()
        self._ended.labels(method, route, str(status)).inc()
        self._durations.labels(method, route).observe(duration_s)


class RedisMetrics(Collector):
    """How often each part that Redis plays for this process has failed, and which of them fails now."""

    def __init__(self, outages: Sequence[Outage]) -> None:
        self._outages = outages

    def collect(self) -> Iterator[Metric]:
        """The figures as they are when they are asked for."""
        failures = CounterMetricFamily(
            "threadmark_redis_failures", "What Redis did not do; the runs went on without it.", labels=("part",)
        )
        away = GaugeMetricFamily("threadmark_redis_away", "1 while Redis does not do this part.", labels=("part",))
        for each in self._outages:
            failures.add_metric((each.part,), each.failure_count)
            away.add_metric((each.part,), each.is_on)
        yield failures
        yield away
