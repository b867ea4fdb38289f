"""Views: versioned lists of what the model sees of a thread. They name entries and segments and copy nothing."""

from collections.abc import Iterable, Sequence

import msgspec

from threadmark.compaction.errors import ViewBroken
from threadmark.compaction.input.source import Trust

__all__ = ["Item", "Live", "Masked", "Pin", "Segment", "Summary", "View", "first_view", "live_seqs", "ranges_of"]


class Live(msgspec.Struct, frozen=True, tag="live"):
    """Entries as they are. Without `to_seq`, all from `from_seq` to the head: what comes later is in it too."""

    from_seq: int
    to_seq: int | None = None


class Masked(msgspec.Struct, frozen=True, tag="masked"):
    """A tool's output, replaced by one line that says where it is."""

    seq: int


class Summary(msgspec.Struct, frozen=True, tag="summary"):
    """A summary segment in the place of the entries it covers."""

    segment_id: str
    from_seq: int
    to_seq: int


class Pin(msgspec.Struct, frozen=True, tag="pin"):
    """A span of a covered entry, brought back word for word."""

    seq: int
    part: int
    start: int
    end: int
    message: int = 0


Item = Live | Masked | Summary | Pin


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A summary with its kept facts, frozen when it is made.

    `covered` are the `seq` of the entries it replaces; `rank` rises when segments are merged, and every merge starts
    again from the entries, so `rank + 1` is how often an entry was summarised at most. `trust` is that of the least
    trusted entry it covers.
    """

    segment_id: str
    compaction_id: str
    text: str
    covered: tuple[int, ...]
    rank: int = 0
    trust: Trust = Trust.USER
    tokens: int = 0
    message_count: int = 0
    dropped_count: int = 0
    critical_dropped_count: int = 0

    @property
    def from_seq(self) -> int:
        """The first entry it covers."""
        return self.covered[0]

    @property
    def to_seq(self) -> int:
        """The last entry it covers; entries between may have stayed."""
        return self.covered[-1]


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What the model sees of a thread, in order. `parent_id` is the view it was made from."""

    view_id: str
    items: tuple[Item, ...]
    version: int = 1
    parent_id: str | None = None
    compaction_id: str | None = None

    def segment_ids(self) -> tuple[str, ...]:
        """The segments that it shows, in order."""
        return tuple(item.segment_id for item in self.items if isinstance(item, Summary))


def first_view(view_id: str) -> View:
    """The view of a thread that was never compacted: everything."""
    return View(view_id=view_id, items=(Live(1),))


def live_seqs(view: View, head_seq: int) -> set[int]:
    """The entries that stand in the view as they are, up to `head_seq`. Raises ViewBroken for an entry named twice."""
    seqs: set[int] = set()
    for item in view.items:
        if isinstance(item, Live):
            last = head_seq if item.to_seq is None else item.to_seq
            before = len(seqs)
            seqs.update(range(item.from_seq, last + 1))
            if len(seqs) - before != max(0, last - item.from_seq + 1):
                raise ViewBroken(view.view_id, f"entries from {item.from_seq} are in it twice")
    return seqs


def ranges_of(seqs: Iterable[int], known: Sequence[int]) -> list[tuple[int, int]]:
    """The fewest ranges that hold exactly these of the `known` seqs (sorted); what is not known may lie between."""
    wanted = set(seqs)
    ranges: list[tuple[int, int]] = []
    previous_in = False
    for seq in known:
        if seq in wanted:
            ranges.append((ranges.pop()[0], seq) if previous_in else (seq, seq))
        previous_in = seq in wanted
    return ranges
