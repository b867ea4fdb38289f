"""Traces: one for each run, one span for each step, by any exporter and any number of exports."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from tests.conformance.store import Store
from tests.integration.state.mortality import Death, Fate, mortal
from tests.integration.state.stage import Stage, open_stage
from tests.support.factories import Reply, human
from threadmark.state import RunRequest, RunStatus
from threadmark.workers.agents.tools import Effect, NonRetryable, Tool, tool
from threadmark.workers.telemetry.otel import OtelTracer
from threadmark.workers.telemetry.spans import trace_id_of

CALLING = [Reply("I act.", [("act", {})]), Reply("All done.")]
POINT_COUNT_MAX = 100


@tool(effect=Effect.PURE)
async def act() -> str:
    """Act."""
    return "ok"


@tool(effect=Effect.PURE, name="act")
async def fail() -> str:
    """Fail."""
    raise NonRetryable("no way")


@asynccontextmanager
async def traced(store: Store, folder: Path, tools: list[Tool]) -> AsyncIterator[tuple[Stage, InMemorySpanExporter]]:
    """A stage whose turns are traced."""
    exporter = InMemorySpanExporter()
    async with open_stage(store, folder, CALLING, tools) as stage:
        tracer = OtelTracer(SimpleSpanProcessor(exporter))
        yield replace(stage, parts=replace(stage.parts, tracer=tracer)), exporter
        tracer.close()


def ids_of(span: ReadableSpan) -> tuple[int, int, int | None]:
    """Trace, span and parent."""
    assert span.context is not None
    return span.context.trace_id, span.context.span_id, None if span.parent is None else span.parent.span_id


async def test_a_run_is_a_trace_and_each_step_a_span(store: Store, tmp_path: Path) -> None:
    """Under the span of the run; with the instants of the journal, and linked to the request that brought it."""
    async with traced(store, tmp_path, [act]) as (stage, exporter):
        header = f"00-{'ab' * 16}-{'cd' * 8}-01"
        run = await stage.say(request=RunRequest(messages=(human("go"),), trace_parent=header))
        assert (await stage.play_out(run)).status is RunStatus.SUCCESS

        spans = exporter.get_finished_spans()
        entries = {each.seq: each for each in await stage.entries(run)}

    assert [span.name for span in spans] == ["model", "tool act", "model", "run chat"]
    *steps, root = spans
    trace_id, root_id, parent_id = ids_of(root)
    assert (trace_id, parent_id) == (trace_id_of(run.run_id), None)
    assert {(ids_of(span)[0], ids_of(span)[2]) for span in steps} == {(trace_id, root_id)}
    assert len({ids_of(span)[1] for span in spans}) == 4
    for span in steps:
        assert span.attributes is not None
        recorded = entries[int(str(span.attributes["threadmark.seq"]))]
        assert span.end_time == recorded.at_us * 1_000
        assert span.start_time == (recorded.at_us - getattr(recorded.entry, "duration_us")) * 1_000  # noqa: B009
    (link,) = root.links
    assert (f"{link.context.trace_id:032x}", f"{link.context.span_id:016x}") == ("ab" * 16, "cd" * 8)


async def test_a_step_that_failed_is_an_error(store: Store, tmp_path: Path) -> None:
    """With what went wrong."""
    async with traced(store, tmp_path, [fail]) as (stage, exporter):
        run = await stage.say()
        await stage.play_out(run)

        (failed,) = [span for span in exporter.get_finished_spans() if span.name == "tool act"]

    assert (failed.status.status_code, failed.status.description) == (StatusCode.ERROR, "NonRetryable: no way")


async def test_a_step_is_one_span_wherever_the_worker_dies(store: Store, tmp_path: Path) -> None:
    """A worker that takes over exports again what the dead one may not have sent: the same spans, none missing."""
    at = 0
    while True:
        at += 1
        assert at < POINT_COUNT_MAX
        async with traced(store, tmp_path, [act]) as (stage, exporter):
            fate, reply = Fate(at), stage.model.reply
            doomed = mortal(stage, fate, [act])
            run = await stage.say(f"death {at}")
            try:
                await doomed.play()
            except Death:
                # What it had handed over and not sent is gone with it.
                exporter.clear()
            stage.model.reply = reply  # type: ignore[method-assign]
            heirs = replace(stage, _worker_count=100)  # whose names the dead one did not have
            assert (await heirs.play_out(run)).status is RunStatus.SUCCESS
            spans = exporter.get_finished_spans()
            steps = {
                str(each.entry.step_key)  # type: ignore[attr-defined]
                for each in await stage.entries(run)
                if each.kind in ("model_replied", "tool_returned")
            }
        names = {(span.attributes or {})["threadmark.step_key"]: ids_of(span) for span in spans if span.parent}
        seen = Counter(ids_of(span) for span in spans if span.parent)
        if not fate.is_dead:
            assert set(seen.values()) == {1}
            return
        if any(span.parent is None for span in spans):
            assert set(names) == steps, fate.name
        assert set(seen) == set(names.values()), fate.name


async def test_the_same_steps_are_the_same_spans_in_every_process(store: Store, tmp_path: Path) -> None:
    """Exported twice, by two tracers: the ids and the instants are equal."""
    async with traced(store, tmp_path, [act]) as (stage, exporter):
        run = await stage.play_out(await stage.say())
        other = InMemorySpanExporter()

        OtelTracer(SimpleSpanProcessor(other)).recorded(run, await stage.entries(run))

        first, again = exporter.get_finished_spans(), other.get_finished_spans()
    assert [(ids_of(each), each.start_time, each.end_time) for each in first] == [
        (ids_of(each), each.start_time, each.end_time) for each in again
    ]
