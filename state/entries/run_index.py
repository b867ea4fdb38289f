"""An index of the runs in a journal, on any branch. Pure.

A turn needs three facts about its run before it begins, without reading the entries: whether the run has started, where
its first entry is, and whether all entries of its execution are still on the thread's current branch.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from threadmark.state.entries.entry import Recorded, RunStarted
from threadmark.state.entries.ids import ExecutionId, RunId
from threadmark.state.entries.lineage import Lineage

__all__ = ["Origin", "RunIndex"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Which run did something, and of which assistant."""

    run_id: RunId
    assistant: str


class _Span(NamedTuple):
    first_seq: int
    branch: int
    last_seq: int  #: on that branch
    left: tuple[tuple[int, int], ...] = ()  #: earlier branches of the run, each with its last seq there


@dataclass(slots=True)
class RunIndex:
    """Grows by one entry at a time, with entries of every branch in order."""

    _spans: dict[int, _Span] = field(default_factory=dict)  #: by number of the run
    _begun: dict[ExecutionId, tuple[int, ...]] = field(default_factory=dict)  #: the runs that began or resumed it
    _origins: dict[int, Origin] = field(default_factory=dict)  #: by number of the run

    def see(self, entries: Iterable[Recorded]) -> None:
        """Add further entries."""
        for each in entries:
            run = each.run
            if run is None:
                continue
            span = self._spans.get(run)
            if span is None:
                self._spans[run] = _Span(each.seq, each.branch, each.seq)
            elif span.branch == each.branch:
                self._spans[run] = _Span(span.first_seq, span.branch, each.seq, span.left)
            else:
                left = (*span.left, (span.branch, span.last_seq))
                self._spans[run] = _Span(span.first_seq, each.branch, each.seq, left)
            if isinstance(each.entry, RunStarted):
                self._origins[run] = Origin(each.entry.run_id, each.entry.assistant)
                execution_id = each.entry.execution_id
                self._begun[execution_id] = (*self._begun.get(execution_id, ()), run)

    def first_seq(self, run: int) -> int | None:
        """The seq of the run's first entry; None if it has none."""
        span = self._spans.get(run)
        return None if span is None else span.first_seq

    def has_started(self, run: int) -> bool:
        """Whether the run has started."""
        return run in self._origins

    def origin_of(self, run: int | None) -> Origin | None:
        """The run with this number; None if it has not started, and for entries of no run."""
        return None if run is None else self._origins.get(run)

    def has_begun(self, execution_id: ExecutionId) -> bool:
        """Whether a run has begun the execution."""
        return execution_id in self._begun

    def is_whole(self, execution_id: ExecutionId, lineage: Lineage) -> bool:
        """Whether the lineage includes every entry of the execution's runs; true if the execution has not begun."""
        upto = {each.branch: each.upto_seq for each in lineage}
        for run in self._begun.get(execution_id, ()):
            span = self._spans[run]
            for branch, last_seq in (*span.left, (span.branch, span.last_seq)):
                if branch not in upto:
                    return False
                bound = upto[branch]
                if bound is not None and last_seq > bound:
                    return False
        return True

    def copy(self) -> "RunIndex":
        """A copy that later entries do not change."""
        return RunIndex(dict(self._spans), dict(self._begun), dict(self._origins))
