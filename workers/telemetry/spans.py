"""Spans: what a trace shows of a run, from its journal. Pure.

One trace for each run, one span for the run and one for each step that was recorded. Ids follow from the run and the
step's key, and instants from the journal: exporting a step again, after any restart, exports the same span.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from threadmark.state import Entry, Failure, ModelReplied, Recalled, Recorded, Run, RunSettled, ToolReturned, to_us

__all__ = ["Span", "link_of", "spans_of", "trace_id_of"]

_TRACE_PARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?")
Attributes = dict[str, str | int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One span. Instants are epoch microseconds; `link` is the (trace, span) of the request that brought the run."""

    trace_id: int
    span_id: int
    parent_id: int | None
    name: str
    start_us: int
    end_us: int
    attributes: Attributes = field(default_factory=dict)
    failure: str | None = None
    link: tuple[int, int] | None = None


def trace_id_of(run_id: str) -> int:
    """The trace of a run: 128 bits, the same in every process."""
    return _id(f"trace/{run_id}", 16)


def link_of(trace_parent: str | None) -> tuple[int, int] | None:
    """Trace and span of a `traceparent` header (W3C Trace Context); None where it names none, as a broken one does."""
    found = _TRACE_PARENT.fullmatch(trace_parent or "")
    if found is None or found[0].startswith("ff"):
        return None
    trace_id, span_id = int(found[1], 16), int(found[2], 16)
    return (trace_id, span_id) if trace_id and span_id else None


def spans_of(run: Run, entries: Sequence[Recorded]) -> list[Span]:
    """The spans of what these entries of the run ended: its steps, and the run itself."""
    return [span for each in entries if (span := _span_of(run, each)) is not None]


def _span_of(run: Run, recorded: Recorded) -> Span | None:
    match recorded.entry:
        case ModelReplied() as entry:
            attributes: Attributes = {
                "gen_ai.response.model": entry.model,
                "gen_ai.usage.input_tokens": entry.usage.input_tokens,
                "gen_ai.usage.output_tokens": entry.usage.output_tokens,
            }
            return _step(run, recorded, entry, "model", attributes)
        case ToolReturned() as entry:
            attributes = {"gen_ai.tool.name": entry.tool, "threadmark.outcome": entry.outcome}
            return _step(run, recorded, entry, f"tool {entry.tool}", attributes, entry.failure)
        case Recalled() as entry:
            return _step(run, recorded, entry, "recall", {"threadmark.outcome": entry.status}, entry.failure)
        case RunSettled() as entry:
            return _run(run, recorded, entry)
        case Entry():
            return None


def _step(
    run: Run,
    recorded: Recorded,
    entry: ModelReplied | ToolReturned | Recalled,
    name: str,
    attributes: Attributes,
    failure: Failure | None = None,
) -> Span:
    return Span(
        trace_id=trace_id_of(run.run_id),
        # By its place too: a fork and a rollback leave steps behind whose keys come again.
        span_id=_id(f"step/{run.run_id}/{recorded.branch}/{entry.step_key}", 8),
        parent_id=_id(f"run/{run.run_id}", 8),
        name=name,
        start_us=recorded.at_us - entry.duration_us,
        end_us=recorded.at_us,
        attributes={
            "threadmark.step_key": entry.step_key,
            "threadmark.attempt": entry.attempt,
            "threadmark.seq": recorded.seq,
            **attributes,
        },
        failure=None if failure is None else f"{failure.error}: {failure.message}",
    )


def _run(run: Run, recorded: Recorded, entry: RunSettled) -> Span:
    failure = entry.failure
    return Span(
        trace_id=trace_id_of(run.run_id),
        span_id=_id(f"run/{run.run_id}", 8),
        parent_id=None,
        name=f"run {run.assistant}",
        start_us=to_us(run.created_at),
        end_us=max(recorded.at_us, to_us(run.created_at)),
        attributes={
            "threadmark.run_id": run.run_id,
            "threadmark.thread_id": run.thread_id,
            "threadmark.status": entry.status,
            "threadmark.attempts": run.attempts,
        },
        failure=None if failure is None else f"{failure.error}: {failure.message}",
        link=link_of(run.request.trace_parent),
    )


def _id(name: str, size: int) -> int:
    # 0 is no id.
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:size], "big") or 1
