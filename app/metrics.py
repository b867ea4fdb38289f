"""What is counted about HTTP, for Prometheus. One registry per application, so two in one process do not mix."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

__all__ = ["HttpMetrics"]

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
