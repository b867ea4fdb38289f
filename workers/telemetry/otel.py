"""Spans sent with OpenTelemetry. The one module that imports it: the extra `otel`."""

from collections.abc import Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, Status, StatusCode, TraceFlags

from threadmark.state import Recorded, Run
from threadmark.workers.telemetry.spans import Span, spans_of

__all__ = ["OtelTracer", "open_tracer"]

#: How long a span waits for others at most, and how long a collector may take (seconds).
DELAY_S = 1.0
TIMEOUT_S = 3.0
_SCOPE = InstrumentationScope("threadmark")


def open_tracer(url: str) -> "OtelTracer":
    """A tracer that sends spans to `url` (OTLP over HTTP) from a thread of its own; a full queue drops the oldest."""
    exporter = OTLPSpanExporter(endpoint=url, timeout=TIMEOUT_S)
    return OtelTracer(BatchSpanProcessor(exporter, schedule_delay_millis=DELAY_S * 1_000))


class OtelTracer:
    """Hands finished spans to a processor of the SDK. No span is ever open: a crash leaves none without an end."""

    def __init__(self, processor: SpanProcessor) -> None:
        self._processor = processor
        self._resource = Resource.create({"service.name": "threadmark"})

    def recorded(self, run: Run, entries: Sequence[Recorded]) -> None:
        """Hand over the spans of what these entries ended."""
        for each in spans_of(run, entries):
            self._processor.on_end(self._readable(each))

    def close(self) -> None:
        """Send what is left. Blocks."""
        self._processor.shutdown()

    def _readable(self, span: Span) -> ReadableSpan:
        return ReadableSpan(
            name=span.name,
            context=_context(span.trace_id, span.span_id),
            parent=None if span.parent_id is None else _context(span.trace_id, span.parent_id),
            resource=self._resource,
            attributes=span.attributes,
            links=() if span.link is None else (Link(_context(*span.link, is_remote=True)),),
            status=Status() if span.failure is None else Status(StatusCode.ERROR, span.failure),
            start_time=span.start_us * 1_000,
            end_time=span.end_us * 1_000,
            instrumentation_scope=_SCOPE,
        )


def _context(trace_id: int, span_id: int, *, is_remote: bool = False) -> SpanContext:
    return SpanContext(trace_id, span_id, is_remote, TraceFlags(TraceFlags.SAMPLED))
