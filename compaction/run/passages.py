"""The texts of a new view, as the ledger looks for kept things in them."""

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from threadmark.compaction.input.analysis import Analyses
from threadmark.compaction.input.source import Role, SourceEntry
from threadmark.compaction.ledger import Passage
from threadmark.compaction.summary.drafts import passage_of
from threadmark.compaction.view.items import Live, Pin, Segment, Summary, View

__all__ = ["passages_of"]


def passages_of(
    view: View,
    entries: Sequence[SourceEntry],
    segments: Mapping[str, Segment],
    analyses: Analyses,
    persistent: Collection[int],
) -> Iterator[Passage]:
    """One passage for each text: summaries, pinned spans, and the entries that stay.

    `lasting` are the `seq` of entries that later compactions keep as well (system text, pins, the first request).
    """
    by_seq: dict[int, list[SourceEntry]] = {}
    for entry in entries:
        by_seq.setdefault(entry.seq, []).append(entry)
    for item in view.items:
        if isinstance(item, Summary):
            yield passage_of(item.segment_id, segments[item.segment_id].text)
        elif isinstance(item, Live):
            for entry in entries:
                if item.from_seq <= entry.seq and (item.to_seq is None or entry.seq <= item.to_seq):
                    yield from _of_entry(
                        entry, analyses, persistent=entry.seq in persistent or entry.role is Role.SYSTEM
                    )
        elif isinstance(item, Pin):
            for entry in by_seq.get(item.seq, ()):
                if entry.message == item.message and not entry.erased:
                    yield _of_pin(entry, item, analyses)


def _of_entry(entry: SourceEntry, analyses: Analyses, *, persistent: bool) -> Iterator[Passage]:
    if entry.erased:
        return
    for analysed in analyses.of(entry):
        yield Passage(
            text=entry.text_of(analysed.part),
            found=analysed.found,
            persistent=persistent or entry.pinned,
            seq=entry.seq,
            message=entry.message,
            part=analysed.part,
        )


def _of_pin(entry: SourceEntry, pin: Pin, analyses: Analyses) -> Passage:
    """The span alone, by what was found in the whole text: a value cut out of its sentence would read differently."""
    found = next(each.found for each in analyses.of(entry) if each.part == pin.part)
    shift = pin.start
    inside = type(found)(
        tuple(
            msgspec.structs.replace(atom, start=atom.start - shift, end=atom.end - shift)
            for atom in found.atoms
            if pin.start <= atom.start and atom.end <= pin.end
        ),
        tuple(
            msgspec.structs.replace(clause, start=clause.start - shift, end=clause.end - shift)
            for clause in found.clauses
            if pin.start <= clause.start and clause.end <= pin.end
        ),
        tuple((start - shift, end - shift) for start, end in found.sentences if pin.start <= start and end <= pin.end),
    )
    return Passage(
        text=entry.text_of(pin.part)[pin.start : pin.end],
        found=inside,
        persistent=True,
        seq=entry.seq,
        message=entry.message,
        part=pin.part,
    )
