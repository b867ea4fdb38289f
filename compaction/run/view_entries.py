"""What the journal records of a view: which one, by what, and none of its words."""

from threadmark.compaction.model.records import Cause, Compaction, KeptView
from threadmark.state import ViewAct, ViewChanged

__all__ = ["act_of", "change_to"]

_ACTS: dict[Cause, ViewAct] = {
    Cause.COMPACTION: "compacted",
    Cause.RESTORE: "restored",
    Cause.ERASURE: "erased",
}


def act_of(kept: KeptView) -> ViewAct:
    """What made the view, as far as the view itself knows."""
    return _ACTS[kept.cause]


def change_to(kept: KeptView, act: ViewAct, done: Compaction | None = None) -> ViewChanged:
    """The entry that says that the thread has this view now; `done` is the compaction that made it, if one did."""
    return ViewChanged(
        view_id=kept.view.view_id,
        version=kept.view.version,
        act=act,
        by=kept.requested_by,
        compaction_id=None if done is None else done.compaction_id,
        covers=None if done is None else done.covers,
    )
