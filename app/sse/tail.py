"""The tail of a run: its events, from the journal and from the live feed, until it is over.

The journal is read when the feed tells of an entry, and now and then in case nobody tells. A flash is told after the
entry that it follows, and in its order: one that the feed has lost is told when the journal has it.
"""

from collections.abc import AsyncGenerator, Collection, Iterator
from dataclasses import dataclass

from sqlalchemy import Connection

from app.following import POLL_S, is_over
from app.wire.events import Event, RunEvents, RunFacts, StreamMode
from app.wire.places import START, Place, flash_slot
from app.wire.spelling import spell_event
from state import Recorded, Run, ThreadState, find_run, fold, lineage_of, read_entries, read_leaves, visible
from workers.agents import assistant_id_of
from workers.feed import Watch
from workers.wiring import Resources

__all__ = ["follow"]


@dataclass(frozen=True, slots=True)
class _Look:
    """The run, its entries that were not seen before, and, at the first of them, the state that they were added to."""

    run: Run | None
    entries: list[Recorded]
    base: ThreadState | None = None


async def follow(
    wired: Resources, run: Run, modes: Collection[StreamMode], after: Place | None
) -> AsyncGenerator[Event | None, None]:
    """The run's events after a place, or from now on (None); in between None, at least every POLL_S seconds.

    Ends when the run is over. One that waits for its doubt to be settled ends with an event `end`, because by its
    status alone clients would come back for more.
    """
    with wired.feed.watch(run.tenant_id, run.run_id) as ear:
        tail = _Tail(wired, run, modes, after, ear)
        while True:
            look = await tail.look()
            for event in tail.of_entries(look):
                yield event
            if is_over(look.run):
                if look.run is not None and look.run.parked is not None:
                    yield Event("end", spell_event({"run_id": run.run_id, "status": look.run.status}))
                return
            for event in tail.of_flashes():
                yield event
            while True:
                await ear.changed(POLL_S)
                yield None
                told = list(tail.of_flashes())
                if not told:
                    break
                for event in told:
                    yield event


class _Tail:
    """What one reader was told, and what comes next."""

    def __init__(
        self, wired: Resources, run: Run, modes: Collection[StreamMode], after: Place | None, ear: Watch
    ) -> None:
        self._wired = wired
        self._ear = ear
        self._run = run
        self._modes = modes
        self._after = after
        self._events: RunEvents | None = None

    async def look(self) -> _Look:
        """Run and entries in one snapshot: who sees the run settled sees every entry of it."""
        return await self._wired.database.read(self._look)

    def of_entries(self, look: _Look) -> Iterator[Event]:
        """The events of the entries."""
        if self._events is None:
            if look.base is None:
                # It has not begun: all that comes is news.
                self._after = self._after or START
                return
            self._events = self._begin(look.entries, look.base)
        for entry in look.entries:
            yield from self._events.of_entry(entry)

    def of_flashes(self) -> Iterator[Event]:
        """The events of what flashed since the last entry and was not told."""
        if self._events is not None:
            for flash in self._ear.flashes(self._events.seq, self._events.flash_count):
                yield from self._events.of_flash(flash)

    def _look(self, connection: Connection) -> _Look:
        run = find_run(connection, self._run.tenant_id, self._run.run_id)
        if run is None or run.attempts == 0:
            return _Look(run, [])
        seen = 0 if self._events is None else self._events.seq
        entries = read_entries(connection, run.thread, seen)
        own = [each for each in entries if each.run == run.number]
        if self._events is not None or not own:
            return _Look(run, own)
        lineage = lineage_of(read_leaves(connection, run.thread), own[0].branch)
        base = fold(each for each in visible(entries, lineage) if each.seq < own[0].seq)
        return _Look(run, own, base)

    def _begin(self, entries: list[Recorded], base: ThreadState) -> RunEvents:
        run, after = self._run, self._after
        if after is None:
            last_seq = entries[-1].seq
            shown_count = len(self._ear.flashes(last_seq, 0))
            after = Place(last_seq, flash_slot(shown_count + 1) - 1)
        facts = RunFacts(
            run_id=run.run_id,
            thread_id=run.thread_id,
            assistant=run.assistant,
            assistant_id=assistant_id_of(run.assistant),
            metadata=run.metadata,
            tags=run.request.tags,
        )
        return RunEvents(facts, self._modes, after, state=base, seq=entries[0].seq - 1)
