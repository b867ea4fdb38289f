"""Recalls of dropped units, and the pins that they suggest, as they are shown."""

from datetime import datetime

from msgspec import Struct

from threadmark.app.wire.compactions.drop_schema import Span
from threadmark.compaction import DropRecall, PinSuggestion
from threadmark.state import from_us

__all__ = ["ShownDropRecall", "ShownSuggestion"]


class ShownDropRecall(Struct, kw_only=True):
    """A request for a drop: by an `agent` with its tool, or by a person who `opened` or `restored` it."""

    drop_id: str
    how: str
    requested_by: str
    at: datetime

    @classmethod
    def of(cls, noted: DropRecall) -> "ShownDropRecall":
        """The recall as it is shown."""
        return cls(drop_id=noted.drop_id, how=noted.how, requested_by=noted.requested_by, at=from_us(noted.at_us))


class ShownSuggestion(Struct, kw_only=True, rename={"cls": "class"}):
    """A unit that was asked for at least twice and is not in the view as it was said; `span` goes to `POST …/pins`."""

    drop_id: str
    compaction_id: str
    unit: str
    cls: str
    text: str
    role: str | None
    trust: str | None
    span: Span
    recall_count: int
    last_recalled_at: datetime

    @classmethod
    def of(cls, made: PinSuggestion) -> "ShownSuggestion":
        """The suggestion as it is shown."""
        row, span = made.drop.row, made.span
        return cls(
            drop_id=made.drop.drop_id,
            compaction_id=made.drop.compaction_id,
            unit=row.unit,
            cls=row.cls,
            text=made.text,
            role=row.role,
            trust=row.trust,
            span=Span(span.seq, span.start, span.end, span.part, span.message),
            recall_count=made.recall_count,
            last_recalled_at=from_us(made.last_recalled_at_us),
        )
