"""The tail of a run: its events, from the journal and from the live feed, until it is over.

The journal is read when the feed announces an entry, and now and then in case a notice is lost. A flash is sent after
the entry that it follows, and in its order: one that the feed has lost is sent when the journal has it.
"""

from collections.abc import AsyncGenerator, Collection, Iterator
from dataclasses import dataclass

from sqlalchemy import Connection

from threadmark.app.pools import sliced
from threadmark.app.runs.run_outcome import POLL_S, is_over
from threadmark.app.wire.conversations.event_ids import START, Place, flash_slot
from threadmark.app.wire.conversations.event_schema import Event, RunEvents, RunFacts, StreamMode
from threadmark.app.wire.event_json import spell_event
from threadmark.state import Recorded, Run, ThreadState, find_run, fold, lineage_of, read_entries, read_leaves, visible
from threadmark.workers.agents.agent import assistant_id_of
from threadmark.workers.feeds.feed import Watch
from threadmark.workers.wiring import Resources

__all__ = ["ENTRY_COUNT_MAX", "follow"]

#: Entries that wait in memory for a slow reader; the others wait in the journal.
ENTRY_COUNT_MAX = 256
#: From so many messages on, the events of a thread are made beside the event loop.
MESSAGE_COUNT_MIN = 200


@dataclass(frozen=True, slots=True)
class _Look:
    """The run, and its next entries; there are more of them unless it `is_whole`.

    At the first of all: the state that they were added to, and the seq of the last one there is.
    """

    run: Run | None
    entries: list[Recorded]
    is_whole: bool = True
    base: ThreadState | None = None
    last_seq: int = 0


async def follow(
    wired: Resources, run: Run, modes: Collection[StreamMode], after: Place | None
) -> AsyncGenerator[Event | None, None]:
    """The run's events after a place, or from now on (None); in between None, at least every POLL_S seconds.

    Ends when the run is over. One that waits for its doubt to be settled ends with an event `end`, because by its
    status alone clients would come back for more.
    """
    with wired.feed.watch(run.tenant_id, run.run_id) as watch:
        tail = _Tail(wired, run, modes, after, watch)
        while True:
            look = await tail.look()
            async for event in _entry_events(tail, look):
                yield event
            if not look.is_whole:
                continue
            if is_over(look.run):
                if look.run is not None and look.run.parked is not None:
                    yield Event("end", spell_event({"run_id": run.run_id, "status": look.run.status}))
                return
            hears_flashes = True
            while hears_flashes:
                for event in tail.of_flashes():
                    yield event
                await watch.changed(POLL_S)
                yield None
                hears_flashes = tail.has_flashes()


async def _entry_events(tail: "_Tail", look: _Look) -> AsyncGenerator[Event, None]:
    """The events of the entries. Those of a long thread are made beside the event loop: each may repeat it whole."""
    events = tail.of_entries(look)
    if tail.message_count(look) >= MESSAGE_COUNT_MIN:
        async for event in sliced(events):
            yield event
        return
    for event in events:
        yield event


class _Tail:
    """What one reader was sent, and what comes next."""

    def __init__(
        self, wired: Resources, run: Run, modes: Collection[StreamMode], after: Place | None, watch: Watch
    ) -> None:
        self._wired = wired
        self._watch = watch
        self._run = run
        self._modes = modes
        self._after = after
        self._events: RunEvents | None = None

    def message_count(self, look: _Look) -> int:
        """Messages of the thread that events with its values have in them."""
        if self._events is not None:
            return self._events.message_count
        return 0 if look.base is None else len(look.base.by_id)

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
            self._events = self._begin(look, look.base)
        for entry in look.entries:
            yield from self._events.of_entry(entry)

    def of_flashes(self) -> Iterator[Event]:
        """The events of what flashed since the last entry and was not sent."""
        if self._events is not None:
            for flash in self._watch.flashes(self._events.seq, self._events.flash_count):
                yield from self._events.of_flash(flash)

    def has_flashes(self) -> bool:
        """Whether something flashed since the last entry and was not sent."""
        return self._events is not None and bool(self._watch.flashes(self._events.seq, self._events.flash_count))

    def _look(self, connection: Connection) -> _Look:
        run = find_run(connection, self._run.tenant_id, self._run.run_id)
        if run is None or run.attempts == 0:
            return _Look(run, [])
        if self._events is not None:
            entries = read_entries(connection, run.thread, self._events.seq, ENTRY_COUNT_MAX)
            own = [each for each in entries if each.run == run.number]
            # A run's entries stand together: where others follow, there are no more of it.
            return _Look(run, own, is_whole=len(own) < ENTRY_COUNT_MAX)
        entries = read_entries(connection, run.thread)
        own = [each for each in entries if each.run == run.number]
        if not own:
            return _Look(run, [])
        lineage = lineage_of(read_leaves(connection, run.thread), own[0].branch)
        base = fold(each for each in visible(entries, lineage) if each.seq < own[0].seq)
        page = own[:ENTRY_COUNT_MAX]
        return _Look(run, page, is_whole=len(page) == len(own), base=base, last_seq=own[-1].seq)

    def _begin(self, look: _Look, base: ThreadState) -> RunEvents:
        run, after = self._run, self._after
        if after is None:
            shown_count = len(self._watch.flashes(look.last_seq, 0))
            after = Place(look.last_seq, flash_slot(shown_count + 1) - 1)
        facts = RunFacts(
            run_id=run.run_id,
            thread_id=run.thread_id,
            assistant=run.assistant,
            assistant_id=assistant_id_of(run.assistant),
            metadata=run.metadata,
            tags=run.request.tags,
        )
        return RunEvents(facts, self._modes, after, state=base, seq=look.entries[0].seq - 1)
