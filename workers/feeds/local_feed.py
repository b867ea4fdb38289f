"""The feed of one process: turns and readers in one event loop."""

import asyncio
from collections import defaultdict
from typing import Self

from threadmark.workers.feeds.feed import Flash, Flashes, RunKey, Watch

__all__ = ["LocalFeed", "LocalWatch"]


class LocalWatch:
    """A reader's subscription to one run of a `LocalFeed`."""

    def __init__(self, feed: "LocalFeed", key: RunKey) -> None:
        self._feed = feed
        self._key = key
        self._event = asyncio.Event()

    def flashes(self, after_seq: int, ordinal: int) -> list[Flash]:
        """What follows in the gap after the entry at `after_seq`, up to the first hole."""
        known = self._feed.known(self._key)
        return [] if known is None else known.after(after_seq, ordinal)

    async def changed(self, timeout_s: float) -> None:
        """Return when something came or the time is up."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            return
        self._event.clear()

    def wake(self) -> None:
        """Something came."""
        self._event.set()

    def __enter__(self) -> Self:
        self._feed.add(self._key, self)
        return self

    def __exit__(self, *_: object) -> None:
        self._feed.remove(self._key, self)


class LocalFeed:
    """Keeps what the turns of this process flash, and wakes its readers."""

    def __init__(self) -> None:
        self._known: dict[RunKey, Flashes] = {}
        self._watches: dict[RunKey, set[LocalWatch]] = defaultdict(set)

    def flash(self, tenant_id: str, run_id: str, flash: Flash) -> None:
        """Show a live event to the readers of a run."""
        key = (tenant_id, run_id)
        if self._known.setdefault(key, Flashes()).add(flash):
            self.wake(key)

    def advanced(self, tenant_id: str, run_id: str, seq: int) -> None:
        """The run's journal is durable up to `seq`: earlier gaps have ended."""
        key = (tenant_id, run_id)
        if (known := self._known.get(key)) is not None:
            known.advance(seq)
        self.wake(key)

    def ended(self, tenant_id: str, run_id: str) -> None:
        """The turn is over."""
        self.forget((tenant_id, run_id))
        self.wake((tenant_id, run_id))

    def watch(self, tenant_id: str, run_id: str) -> Watch:
        """Subscribe to the run; use it in a `with` block. Raises ValueError without a tenant, the only scope."""
        if not tenant_id or not run_id:
            raise ValueError("a run is watched by its tenant")
        return LocalWatch(self, (tenant_id, run_id))

    @property
    def watch_count(self) -> int:
        """How many readers listen."""
        return sum(len(each) for each in self._watches.values())

    @property
    def run_count(self) -> int:
        """How many runs have flashes here: what the leak tests count."""
        return len(self._known)

    def known(self, key: RunKey) -> Flashes | None:
        """What the feed has of a run."""
        return self._known.get(key)

    def forget(self, key: RunKey) -> None:
        """Drop what the feed has of a run."""
        self._known.pop(key, None)

    def add(self, key: RunKey, watch: LocalWatch) -> None:
        """Begin to wake a watch."""
        self._watches[key].add(watch)

    def remove(self, key: RunKey, watch: LocalWatch) -> None:
        """Stop waking a watch."""
        watches = self._watches.get(key)
        if watches is not None:
            watches.discard(watch)
            if not watches:
                del self._watches[key]

    def is_watched(self, key: RunKey) -> bool:
        """Whether anybody listens to the run."""
        return key in self._watches

    def watched(self) -> list[RunKey]:
        """The runs that have subscribers."""
        return list(self._watches)

    def wake(self, key: RunKey) -> None:
        """Something came for the readers of a run."""
        for watch in self._watches.get(key, ()):
            watch.wake()
