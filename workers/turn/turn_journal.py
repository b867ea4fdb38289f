"""One turn's side of a journal: note entries, fold them at once, flush them with the rows that move along."""

import asyncio
from dataclasses import replace
from typing import Any

import msgspec

from threadmark.state import (
    Claim,
    Entry,
    ExecutionId,
    FoldCache,
    Folded,
    Fork,
    JournalWriter,
    Recorded,
    RunChanges,
    RunOutcome,
    ThreadState,
    WaitAnswered,
    WaitOpened,
    WaitSuperseded,
    apply,
)
from threadmark.state.tasks.tasks import NewTask
from threadmark.workers.feeds.feed import Feed, Flash
from threadmark.workers.telemetry.tracing import Tracer

__all__ = ["TurnJournal"]


class TurnJournal:
    """Notes, folds, flushes, and tells the readers."""

    def __init__(
        self,
        claim: Claim,
        folded: Folded,
        writer: JournalWriter,
        *,
        feed: Feed,
        fold_cache: FoldCache,
        task_signal: asyncio.Event,
        tracer: Tracer | None,
    ) -> None:
        """`task_signal` is set after a commit that added a task."""
        self._claim = claim
        self._writer = writer
        self._feed = feed
        self._fold_cache = fold_cache
        self._task_signal = task_signal
        self._tracer = tracer
        self._opened: list[WaitOpened] = []
        self._folded: list[str] = []
        self._superseded: list[str] = []
        self._tasks: list[NewTask] = []
        self._fork: Fork | None = None
        self._begins: ExecutionId | None = None
        self._emitted: list[Any] = []
        self._flash_ordinal = 0
        self._durable_seq = claim.thread.head_seq
        self._held_back: list[Flash] = []
        self._untraced: list[Recorded] = []
        self._lineage = folded.lineage
        self._begun_from = folded
        self.state = folded.state
        self.run_index = folded.run_index
        first_seq = self.run_index.first_seq(claim.run.number)
        #: where the run begins in the journal
        self.first_seq = claim.thread.head_seq + 1 if first_seq is None else first_seq

    @property
    def fence(self) -> int:
        """The number of the turn's lease."""
        return self._writer.fence

    @property
    def inbox(self) -> int:
        """The inbox counter that the last flush brought back; it rises when something came from outside."""
        return self._writer.inbox

    def fork(self, fork: Fork, state: ThreadState) -> None:
        """Go on on a new branch, from `state`."""
        self._fork, self._lineage = fork, fork.lineage
        self._writer.turn_to(fork.branch)
        self.state = state

    def begin_execution(self, execution_id: ExecutionId) -> None:
        """The run begins this execution, and does not carry on the one that it was accepted for."""
        self._begins = execution_id

    def leave(self, wait_id: str) -> None:
        """A question that the thread leaves behind, answered or not: it is closed."""
        self._folded.append(wait_id)
        self._superseded.append(wait_id)

    def order(self, task: NewTask) -> None:
        """Have background work added in the commit of the next flush."""
        self._tasks.append(task)

    def stage(self, entry: Entry) -> Recorded:
        """Give an entry its place and fold it; durable after the next flush."""
        if self._emitted:
            entry = msgspec.structs.replace(entry, emitted=tuple(self._emitted))
            self._emitted = []
        self._flash_ordinal = 0
        recorded = self._writer.append(entry)
        if self._tracer is not None:
            self._untraced.append(recorded)
        apply(self.state, recorded)
        self.run_index.see((recorded,))
        match entry:
            case WaitOpened():
                self._opened.append(entry)
            case WaitAnswered():
                self._folded.append(entry.wait_id)
            case WaitSuperseded():
                self._superseded.append(entry.wait_id)
            case _:
                pass
        return recorded

    def read_away(self, wait_id: str) -> None:
        """An answer that came to a question which had fallen away: nothing to record but that it was read."""
        self._folded.append(wait_id)

    async def flush(self, ending: RunOutcome | None = None) -> None:
        """Put what was noted on disk in one commit. Raises LeaseLost."""
        move = self._move(ending)
        seq = self._writer.seq
        if move is None and seq == self._writer.flushed_seq:
            return
        await self._writer.flush(move)
        # Not before: an end that was refused (Overtaken) leaves everything to the next flush, entries and rows.
        self._opened, self._folded, self._superseded = [], [], []
        self._fork = self._begins = None
        if self._tasks:
            self._tasks = []
            self._task_signal.set()
        self._durable_seq = seq
        self._feed.advanced(self._claim.run.tenant_id, self._claim.run.run_id, seq)
        if self._tracer is not None:
            untraced, self._untraced = self._untraced, []
            self._tracer.recorded(self._claim.run, untraced)
        held_back, self._held_back = self._held_back, []
        for flash in held_back:
            self._show(flash)

    def keep(self) -> None:
        """Keep the fold for the thread's next turn: to be called when this one has ended. Nothing is noted any more."""
        writer = self._writer
        if writer.seq != writer.flushed_seq:
            return
        folded = replace(
            self._begun_from,
            head_seq=writer.seq,
            head_digest=writer.digest,
            lineage=self._lineage,
            state=self.state,
            byte_count=self._begun_from.byte_count + writer.byte_count,
        )
        self._fold_cache.keep(self._claim.thread.number, folded)

    def delta(self, text: str, message_id: str) -> None:
        """Show a piece of a reply to the readers; the reply's entry keeps where it was cut."""
        self._flash("delta", text, message_id)

    def emit(self, data: Any) -> None:
        """Show a custom event to the readers; the next entry keeps it."""
        self._emitted.append(data)
        self._flash("custom", data, None)

    def _flash(self, kind: Any, data: Any, message_id: str | None) -> None:
        self._flash_ordinal += 1
        flash = Flash(
            after_seq=self._writer.seq, ordinal=self._flash_ordinal, kind=kind, data=data, message_id=message_id
        )
        self._show(flash)

    def _show(self, flash: Flash) -> None:
        # What follows an entry that is not durable may follow one that never will be: a holder that was overtaken in
        # between would flash into a gap of its successor's.
        if flash.after_seq > self._durable_seq:
            self._held_back.append(flash)
        else:
            self._feed.flash(self._claim.run.tenant_id, self._claim.run.run_id, flash)

    def _move(self, ending: RunOutcome | None) -> RunChanges | None:
        if not (
            ending or self._opened or self._folded or self._superseded or self._tasks or self._fork or self._begins
        ):
            return None
        return RunChanges(
            ending=ending,
            execution_id=self.state.execution.execution_id if self.state.execution else None,
            begins=self._begins,
            opened=tuple(self._opened),
            folded=tuple(self._folded),
            superseded=tuple(self._superseded),
            fork=self._fork,
            tasks=tuple(self._tasks),
        )
