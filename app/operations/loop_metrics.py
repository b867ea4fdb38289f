"""What the long-lived tasks of this process have done, for Prometheus."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from threadmark.workers.supervisor import Supervisor

__all__ = ["LoopMetrics"]


class LoopMetrics(Collector):
    """How long ago each loop completed a round, and how often one failed. The process that answers is the one meant."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    def collect(self) -> Iterator[Metric]:
        """The figures as they are when they are asked for."""
        age = GaugeMetricFamily(
            "threadmark_loop_age_seconds",
            "Since a long-lived task of this process completed a round.",
            labels=("loop",),
        )
        rounds = CounterMetricFamily("threadmark_loop_rounds", "Rounds that ended well.", labels=("loop",))
        errors = CounterMetricFamily("threadmark_loop_errors", "Rounds that failed.", labels=("loop",))
        stale = GaugeMetricFamily(
            "threadmark_loop_stale",
            "1 while a loop is later than it may be: the process is not ready.",
            labels=("loop",),
        )
        for each in self._supervisor.reports():
            label = (each.name,)
            if each.completed_s is not None:
                age.add_metric(label, each.completed_s)
            rounds.add_metric(label, each.round_count)
            errors.add_metric(label, each.error_count)
            stale.add_metric(label, each.is_stale)
        yield age
        yield rounds
        yield errors
        yield stale
