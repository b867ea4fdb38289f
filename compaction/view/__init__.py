"""Views as values: what the model sees of a thread, how it is rendered, how two of them differ."""

from threadmark.compaction.view.diff import ViewDiff, diff_views
from threadmark.compaction.view.items import Item, Live, Masked, Pin, Segment, Summary, View, first_view, live_seqs
from threadmark.compaction.view.render import PartRole, Rendered, RenderedCall, RenderedPart, check_view, render

__all__ = [
    "Item",
    "Live",
    "Masked",
    "PartRole",
    "Pin",
    "Rendered",
    "RenderedCall",
    "RenderedPart",
    "Segment",
    "Summary",
    "View",
    "ViewDiff",
    "check_view",
    "diff_views",
    "first_view",
    "live_seqs",
    "render",
]
