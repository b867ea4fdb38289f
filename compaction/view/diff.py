"""What changed between two views: which entries, segments and pins came and went."""

from collections.abc import Sequence

import msgspec

from threadmark.compaction.input.source import SourceEntry
from threadmark.compaction.view.items import Live, Masked, Pin, View

__all__ = ["ViewDiff", "diff_views"]


class ViewDiff(msgspec.Struct, frozen=True, kw_only=True):
    """Entries by `seq`; `entries_masked` had their output replaced, `entries_unmasked` have it again."""

    entries_left: tuple[int, ...]
    entries_joined: tuple[int, ...]
    entries_masked: tuple[int, ...]
    entries_unmasked: tuple[int, ...]
    segments_left: tuple[str, ...]
    segments_joined: tuple[str, ...]
    pins_left: tuple[Pin, ...]
    pins_joined: tuple[Pin, ...]


def diff_views(before: View, after: View, entries: Sequence[SourceEntry]) -> ViewDiff:
    """What `after` has that `before` has not, and the other way round, over the thread's entries."""
    seqs = sorted({entry.seq for entry in entries})
    live_before, live_after = _live(before, seqs), _live(after, seqs)
    masked_before, masked_after = _masked(before), _masked(after)
    pins_before = [item for item in before.items if isinstance(item, Pin)]
    pins_after = [item for item in after.items if isinstance(item, Pin)]
    segments_before, segments_after = before.segment_ids(), after.segment_ids()
    return ViewDiff(
        entries_left=tuple(sorted(live_before - live_after - masked_after)),
        entries_joined=tuple(sorted(live_after - live_before - masked_before)),
        entries_masked=tuple(sorted(masked_after & live_before)),
        entries_unmasked=tuple(sorted(masked_before & live_after)),
        segments_left=tuple(each for each in segments_before if each not in segments_after),
        segments_joined=tuple(each for each in segments_after if each not in segments_before),
        pins_left=tuple(each for each in pins_before if each not in pins_after),
        pins_joined=tuple(each for each in pins_after if each not in pins_before),
    )


def _live(view: View, seqs: Sequence[int]) -> set[int]:
    ranges = [(item.from_seq, item.to_seq) for item in view.items if isinstance(item, Live)]
    return {seq for seq in seqs if any(first <= seq and (last is None or seq <= last) for first, last in ranges)}


def _masked(view: View) -> set[int]:
    return {item.seq for item in view.items if isinstance(item, Masked)}
