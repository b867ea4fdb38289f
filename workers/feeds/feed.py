"""The live feed: a hint that a journal has advanced, and what streams between two entries.

Model deltas and custom events are not entries. Each belongs to the gap after an entry: `(after_seq, ordinal)`. The
entry that ends the gap records them, so a reader that missed them here finds them there. Losing a feed loses nothing.
"""

from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

__all__ = ["FLASH_COUNT_MAX", "Feed", "Flash", "Flashes", "RunKey", "Watch"]

#: Flashes kept for each run; older ones are found in the journal once their gap has ended.
FLASH_COUNT_MAX = 4096
#: A run and whose it is. No feed is ever asked for a run alone: what one tenant streams no other can name.
RunKey = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flash:
    """One live event: the `ordinal`-th (from 1) after the entry at `after_seq`, which is durable."""

    after_seq: int
    ordinal: int
    kind: Literal["delta", "custom"]
    data: Any
    message_id: str | None = None


class Watch(Protocol):
    """A reader's subscription to one run, in a `with` block."""

    def flashes(self, after_seq: int, ordinal: int) -> list[Flash]:
        """What follows the `ordinal`-th flash after the entry at `after_seq` (0: the entry itself), without a hole.

        A flash whose predecessor is missing is held back: its reader would take the one before as seen, and the entry
        that ends the gap would not show it any more.
        """

    async def changed(self, timeout_s: float) -> None:
        """Return when something came or the time is up; that nothing came is no proof that nothing happened."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Feed(Protocol):
    """From the turn that moves a run to its readers. No call waits, and none fails."""

    def flash(self, tenant_id: str, run_id: str, flash: Flash) -> None:
        """Show a live event to the readers of a run."""

    def advanced(self, tenant_id: str, run_id: str, seq: int) -> None:
        """The run's journal is durable up to `seq`: earlier gaps have ended."""

    def ended(self, tenant_id: str, run_id: str) -> None:
        """The turn is over."""

    def watch(self, tenant_id: str, run_id: str) -> Watch:
        """Subscribe to the run."""

    @property
    def watch_count(self) -> int:
        """How many readers listen: what the leak tests count."""


class Flashes:
    """What is known of one run's flashes, by place; the earliest go first when there are too many."""

    def __init__(self) -> None:
        self._by_place: dict[tuple[int, int], Flash] = {}

    def add(self, flash: Flash) -> bool:
        """Keep a flash; False when its place is taken already."""
        place = (flash.after_seq, flash.ordinal)
        if place in self._by_place:
            return False
        self._by_place[place] = flash
        if len(self._by_place) > FLASH_COUNT_MAX:
            for each in sorted(self._by_place)[: FLASH_COUNT_MAX // 4]:
                del self._by_place[each]
        return True

    def advance(self, seq: int) -> None:
        """Forget the gaps before the entry at `seq`."""
        for each in [place for place in self._by_place if place[0] < seq]:
            del self._by_place[each]

    def after(self, after_seq: int, ordinal: int) -> list[Flash]:
        """The flashes that follow, up to the first hole."""
        found: list[Flash] = []
        while (flash := self._by_place.get((after_seq, ordinal + len(found) + 1))) is not None:
            found.append(flash)
        return found

    def __len__(self) -> int:
        return len(self._by_place)
