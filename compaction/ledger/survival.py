"""Through which compactions a unit stayed, and where it was lost."""

from collections.abc import Iterable

import msgspec

from threadmark.compaction.ledger.rows import Row
from threadmark.compaction.ledger.terms import KEPT, Status

__all__ = ["History", "histories", "survive"]

_STAYED = KEPT | {Status.PARAPHRASED}


class History(msgspec.Struct, frozen=True):
    """The compactions that a unit survived, in order, and the first that lost it."""

    survived: tuple[str, ...] = ()
    lost_at: str | None = None


def survive(history: History | None, compaction_id: str, status: Status) -> History:
    """The history after one more compaction of the range.

    What was lost and comes back (a later summary says it again, from the original entries) has survived this one.
    """
    if history is None:
        return History((compaction_id,)) if status in _STAYED else History((), compaction_id)
    before = history
    if status in _STAYED:
        return History((*before.survived, compaction_id), None)
    return History(before.survived, before.lost_at or compaction_id)


def histories(rows: Iterable[Row]) -> dict[str, History]:
    """What earlier ledgers say of each unit, by its row's name, in the order of the compactions: the last word wins."""
    return {row.row_id: History(row.survived, row.lost_at) for row in rows if row.status is not Status.INTRODUCED}
