"""The new view: the covered entries make room for the segment, everything else stays where it is."""

from collections.abc import Sequence

from threadmark.compaction.input.source import SourceEntry
from threadmark.compaction.model.plan import Plan
from threadmark.compaction.view.items import Item, Live, Masked, Pin, Segment, Summary, View, live_seqs, ranges_of

__all__ = ["current_entries", "next_view"]


def next_view(
    view: View, view_id: str, compaction_id: str, plan: Plan, segment: Segment | None, entries: Sequence[SourceEntry]
) -> View:
    """The view after the plan. The last range stays open: what is appended meanwhile is in it, once and in order."""
    head = entries[-1].seq if entries else 0
    known = sorted({entry.seq for entry in entries})
    covered = set(plan.covered)
    stubs = ({item.seq for item in view.items if isinstance(item, Masked)} | set(plan.masked)) - covered
    live = live_seqs(view, head) - covered - stubs
    placed: list[tuple[tuple[int, int], Item]] = [
        ((first, 1), Live(first, last)) for first, last in ranges_of(live, known)
    ]
    placed.extend(((seq, 1), Masked(seq)) for seq in stubs)
    for item in view.items:
        if isinstance(item, Summary) and item.segment_id not in plan.absorbed:
            placed.append(((item.from_seq, 0), item))
        elif isinstance(item, Pin):
            placed.append(((item.seq, 2), item))
    if segment is not None:
        placed.append(((segment.from_seq, 0), Summary(segment.segment_id, segment.from_seq, segment.to_seq)))
    placed.sort(key=lambda each: each[0])
    items = _open_ended([item for _, item in placed], head)
    return View(
        view_id=view_id, items=items, version=view.version + 1, parent_id=view.view_id, compaction_id=compaction_id
    )


def _open_ended(items: list[Item], head: int) -> tuple[Item, ...]:
    last = items[-1] if items else None
    if isinstance(last, Live) and last.to_seq == head:
        return (*items[:-1], Live(last.from_seq))
    return (*items, Live(head + 1))


def current_entries(view: View, entries: Sequence[SourceEntry]) -> list[SourceEntry]:
    """The entries that the view shows as they are."""
    seqs = live_seqs(view, entries[-1].seq if entries else 0)
    return [entry for entry in entries if entry.seq in seqs]
