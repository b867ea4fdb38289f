"""What compactions took away, as it is shown."""

from typing import Any

import msgspec
from msgspec import Struct

from threadmark.compaction import Drop, DropSource, Expanded, FoundDrop, SourceEntry

__all__ = ["ShownDrop", "ShownExpansion", "ShownFoundDrop", "ShownMessage", "ShownOrigin", "Span"]


class Span(Struct):
    """An exact place: code points `start` to `end` of a part of a message of the entry `seq`."""

    seq: int
    start: int
    end: int
    part: int = 0
    message: int = 0


class ShownDrop(Struct, kw_only=True, rename={"cls": "class"}):
    """One line of a ledger: a unit of the covered entries, or what the summary says and no entry does (`introduced`).

    `status` says what became of it and `reason` why; `sources` are all its places in the covered entries, `kept_in` its
    place in the view. An erased unit has no text. `survived` are earlier compactions that kept it.
    """

    drop_id: str
    compaction_id: str
    unit: str
    cls: str
    text: str
    canon: str
    status: str
    reason: str | None
    critical: bool
    role: str | None
    trust: str | None
    salience: float
    flipped: bool
    sources: list[Span]
    kept_in: dict[str, Any] | None
    altered_to: str | None
    superseded_by: str | None
    promotion_id: str | None
    survived: list[str]
    lost_at: str | None
    digest: str
    salt: str

    @classmethod
    def of(cls, drop: Drop) -> "ShownDrop":
        """The line as it is shown."""
        row = drop.row
        return cls(
            drop_id=drop.drop_id,
            compaction_id=drop.compaction_id,
            unit=row.unit,
            cls=row.cls,
            text=row.text,
            canon=row.canon,
            status=row.status,
            reason=row.reason,
            critical=row.critical,
            role=row.role,
            trust=row.trust,
            salience=row.salience,
            flipped=row.flipped,
            sources=[Span(each.seq, each.start, each.end, each.part, each.message) for each in row.sources],
            kept_in=None if row.kept_in is None else row.kept_in._asdict(),
            altered_to=row.altered_to,
            superseded_by=row.superseded_by,
            promotion_id=row.promotion_id,
            survived=list(row.survived),
            lost_at=row.lost_at,
            digest=row.digest,
            salt=row.salt,
        )


class ShownFoundDrop(Struct, kw_only=True, rename={"cls": "class"}):
    """An answer: the words as they stand in the journal, with what stands before and after them there.

    `trust` says how far the words are to be believed: they are data, from every speaker.
    """

    drop_id: str
    compaction_id: str
    thread_id: str
    unit: str
    cls: str
    status: str
    text: str
    before: str
    after: str
    source: Span
    role: str
    trust: str
    occurrence_count: int
    score: float

    @classmethod
    def of(cls, found: FoundDrop) -> "ShownFoundDrop":
        """The answer as it is shown."""
        each = found.recalled
        return cls(
            drop_id=found.drop_id,
            compaction_id=found.compaction_id,
            thread_id=found.thread_id,
            unit=each.unit,
            cls=each.cls,
            status=each.status,
            text=each.text,
            before=each.before,
            after=each.after,
            source=Span(each.source.seq, each.source.start, each.source.end, each.source.part, each.source.message),
            role=each.role,
            trust=each.trust,
            occurrence_count=each.occurrence_count,
            score=each.score,
        )


class ShownMessage(Struct, kw_only=True):
    """A message of the thread. `says_it`: the drop has a place in it. An erased one has no text."""

    seq: int
    message: int
    role: str
    trust: str | None
    erased: bool
    says_it: bool
    text: str
    calls: list[dict[str, Any]]

    @classmethod
    def of(cls, entry: SourceEntry, *, says_it: bool) -> "ShownMessage":
        """The message as it is shown."""
        return cls(
            seq=entry.seq,
            message=entry.position.message,
            role=entry.role,
            trust=entry.trust,
            erased=entry.erased,
            says_it=says_it,
            text="\n".join(part.text for part in entry.parts if part.text),
            calls=[msgspec.to_builtins(call) for call in entry.calls],
        )


class ShownExpansion(Struct, kw_only=True):
    """The entries behind a summary, as they were said: whole messages within the budget.

    `next_seq` is the `from_seq` of what is left; null: this is all.
    """

    segment_id: str
    thread_id: str
    compaction_id: str
    from_seq: int
    to_seq: int
    tokens: int
    messages: list[ShownMessage]
    next_seq: int | None

    @classmethod
    def of(cls, found: Expanded, thread_id: str) -> "ShownExpansion":
        """The entries as they are shown."""
        segment = found.segment
        return cls(
            segment_id=segment.segment_id,
            thread_id=thread_id,
            compaction_id=segment.compaction_id,
            from_seq=segment.from_seq,
            to_seq=segment.to_seq,
            tokens=found.tokens,
            messages=[ShownMessage.of(each, says_it=True) for each in found.entries],
            next_seq=found.next_seq,
        )


class ShownOrigin(Struct, kw_only=True):
    """A drop, and the messages that say it with their neighbours, as they were when it was dropped."""

    drop: ShownDrop
    thread_id: str
    messages: list[ShownMessage]

    @classmethod
    def of(cls, source: DropSource) -> "ShownOrigin":
        """The drop in its place."""
        said = {entry.position for entry in source.entries}
        return cls(
            drop=ShownDrop.of(source.drop),
            thread_id=source.thread_id,
            messages=[ShownMessage.of(each, says_it=each.position in said) for each in source.around],
        )
