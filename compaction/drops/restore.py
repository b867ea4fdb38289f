"""Coming back: views that show again what a compaction took away. Nothing is copied; only the view moves."""

from collections.abc import Collection, Iterable, Sequence

from threadmark.compaction.errors import ViewBroken
from threadmark.compaction.input.groups import groups_of
from threadmark.compaction.input.source import SourceEntry
from threadmark.compaction.ledger import Source
from threadmark.compaction.view.items import Item, Live, Masked, Pin, Summary, View, live_seqs, ranges_of

__all__ = ["restore_all", "restore_drops", "restore_range"]


def restore_all(current: View, earlier: View, view_id: str) -> View:
    """A new view that shows what `earlier` showed, and all that was appended since. Undo is the same, from here."""
    return View(view_id=view_id, items=earlier.items, version=current.version + 1, parent_id=current.view_id)


def restore_range(current: View, view_id: str, from_seq: int, to_seq: int, entries: Sequence[SourceEntry]) -> View:
    """A new view with the entries from `from_seq` to `to_seq` as they are, whole groups of them.

    The summaries stay: they tell of the other entries of their range as well. Raises ViewBroken when the range has no
    entries.
    """
    head = entries[-1].seq if entries else 0
    known = sorted({entry.seq for entry in entries})
    wanted = {
        entry.seq
        for group in groups_of(entries)
        if any(from_seq <= entries[at].seq <= to_seq for at in range(group.start, group.end))
        for entry in entries[group.start : group.end]
    }
    if not wanted:
        raise ViewBroken(
            current.view_id, f"no message of this thread stands between the entries {from_seq} and {to_seq}"
        )
    missing = wanted - live_seqs(current, head)
    return _with(current, view_id, [Live(first, last) for first, last in ranges_of(missing, known)], unmasked=missing)


def restore_drops(current: View, view_id: str, spans: Iterable[Source], entries: Sequence[SourceEntry]) -> View:
    """A new view with these spans pinned, each once. Raises ViewBroken for a span that no entry has any more."""
    by_position = {(entry.seq, entry.message): entry for entry in entries}
    pins: list[Item] = []
    for span in spans:
        entry = by_position.get((span.seq, span.message))
        if entry is None or entry.erased:
            why = f"entry {span.seq} is no message of this thread, or its words were erased"
            raise ViewBroken(current.view_id, why)
        has_part = 0 <= span.part < len(entry.parts) + len(entry.calls)
        if not has_part or not 0 <= span.start < span.end <= len(entry.text_of(span.part)):
            raise ViewBroken(current.view_id, f"entry {span.seq} has no span {span.start} to {span.end}")
        pin = Pin(span.seq, span.part, span.start, span.end, span.message)
        if pin not in current.items and pin not in pins:
            pins.append(pin)
    return _with(current, view_id, pins)


def _with(current: View, view_id: str, added: Sequence[Item], unmasked: Collection[int] = ()) -> View:
    kept: list[Item] = [item for item in current.items if not (isinstance(item, Masked) and item.seq in unmasked)]
    items = sorted([*kept, *added], key=_place)
    return View(view_id=view_id, items=tuple(items), version=current.version + 1, parent_id=current.view_id)


def _place(item: Item) -> tuple[int, int]:
    """Where an item stands: summaries first, then entries, then pins, each at the first entry it shows."""
    if isinstance(item, Summary):
        return item.from_seq, 0
    if isinstance(item, Pin):
        return item.seq, 2
    return (item.from_seq if isinstance(item, Live) else item.seq), 1
