"""The live feed: a hint that a journal has advanced, and what streams between two entries.

Model deltas and custom events are not entries. Each belongs to the gap after an entry: `(after_seq, ordinal)`. The
entry that ends the gap records them, so a reader that missed them here finds them there. Losing a feed loses nothing.
"""

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Feed", "Flash", "Watch"]

#: Flashes kept for each run; older ones are found in the journal once their gap has ended.
FLASH_COUNT_MAX = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Flash:
    """One live event: the `ordinal`-th (from 1) after the entry at `after_seq`."""

    after_seq: int
    ordinal: int
    kind: Literal["delta", "custom"]
    data: Any
    message_id: str | None = None


class Watch:
    """A reader's ear on one run."""

    def __init__(self, feed: "Feed", run_id: str) -> None:
        self._feed = feed
        self._run_id = run_id
        self._event = asyncio.Event()

    def flashes(self, after_seq: int, ordinal: int) -> list[Flash]:
        """Flashes later than (after_seq, ordinal) that the feed still has."""
        return [
            each
            for each in self._feed.flashes_of(self._run_id)
            if (each.after_seq, each.ordinal) > (after_seq, ordinal)
        ]

    async def changed(self, timeout_s: float) -> None:
        """Return when something came or the time is up."""
        try:
            await asyncio.wait_for(self._event.wait(), timeout_s)
        except TimeoutError:
            return
        self._event.clear()

    def wake(self) -> None:
        """Something came."""
        self._event.set()

    def __enter__(self) -> "Watch":
        self._feed.add(self._run_id, self)
        return self

    def __exit__(self, *_: object) -> None:
        self._feed.remove(self._run_id, self)


class Feed:
    """The feed of one process."""

    def __init__(self) -> None:
        self._flashes: dict[str, list[Flash]] = {}
        self._watches: dict[str, set[Watch]] = defaultdict(set)

    def flash(self, run_id: str, flash: Flash) -> None:
        """Show a live event to the readers of a run."""
        kept = self._flashes.setdefault(run_id, [])
        kept.append(flash)
        if len(kept) > FLASH_COUNT_MAX:
            del kept[: FLASH_COUNT_MAX // 4]
        self._wake(run_id)

    def advanced(self, run_id: str, seq: int) -> None:
        """The run's journal is durable up to `seq`: earlier gaps have ended."""
        kept = self._flashes.get(run_id)
        if kept:
            kept[:] = [each for each in kept if each.after_seq >= seq]
        self._wake(run_id)

    def ended(self, run_id: str) -> None:
        """The turn is over."""
        self._flashes.pop(run_id, None)
        self._wake(run_id)

    def watch(self, run_id: str) -> Watch:
        """An ear on the run; use it in a `with` block."""
        return Watch(self, run_id)

    def flashes_of(self, run_id: str) -> list[Flash]:
        """What the feed has of a run."""
        return self._flashes.get(run_id, [])

    def add(self, run_id: str, watch: Watch) -> None:
        """Begin to wake a watch."""
        self._watches[run_id].add(watch)

    def remove(self, run_id: str, watch: Watch) -> None:
        """Stop waking a watch."""
        watches = self._watches.get(run_id)
        if watches is not None:
            watches.discard(watch)
            if not watches:
                del self._watches[run_id]

    @property
    def watch_count(self) -> int:
        """How many readers listen: what the leak tests count."""
        return sum(len(each) for each in self._watches.values())

    def _wake(self, run_id: str) -> None:
        for watch in self._watches.get(run_id, ()):
            watch.wake()
