"""What memory could not write down of its recalls, for Prometheus."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from threadmark.memory import Recollection

__all__ = ["RecallMetrics"]


class RecallMetrics(Collector):
    """The count of one process, from its start."""

    def __init__(self, recollection: Recollection) -> None:
        self._recollection = recollection

    def collect(self) -> Iterator[Metric]:
        """The figure of this moment."""
        yield CounterMetricFamily(
            "threadmark_recalls_dropped",
            "Recalls that this process answered and could not log.",
            value=self._recollection.dropped_recall_count,
        )
