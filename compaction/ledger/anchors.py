"""What a value is of: the words around it, by which a later or an altered value is known to be of the same thing."""

from collections.abc import Iterable, Iterator

from threadmark.compaction.atoms import AtomClass
from threadmark.compaction.content_words import content_words
from threadmark.compaction.input.analysis import Analyses, TextAnalysis
from threadmark.compaction.input.source import SourceEntry
from threadmark.compaction.ledger.rows import RowKey
from threadmark.compaction.ledger.terms import UnitKind
from threadmark.db.execution.pools import wanted_each

__all__ = ["ANCHORED", "Anchor", "anchors_of", "is_same_anchor", "source_anchors"]

#: Classes whose values replace each other: there is one budget, one deadline, one version.
ANCHORED = frozenset(
    {
        AtomClass.MONEY,
        AtomClass.PERCENT,
        AtomClass.DATE,
        AtomClass.TIME,
        AtomClass.QUANTITY,
        AtomClass.NUMBER,
        AtomClass.VERSION,
        AtomClass.REFERENCE,
        AtomClass.UUID,
        AtomClass.PATH,
        AtomClass.EMAIL,
        AtomClass.URL,
        AtomClass.PHONE,
        AtomClass.HOST,
    }
)
SHARED_MIN = 2  #: words
SHARE_MIN = 0.5  #: of all words of both

Anchor = frozenset[str]


def is_same_anchor(one: Anchor, other: Anchor) -> bool:
    """Whether enough of the words are shared."""
    shared = len(one & other)
    return shared >= SHARED_MIN and shared / len(one | other) >= SHARE_MIN


def anchors_of(text: str, found: TextAnalysis, classes: Iterable[str]) -> Iterator[tuple[str, str, Anchor]]:
    """Class, normal form and anchor of each value of the classes: the words of its sentence without any value."""
    wanted = frozenset(classes)
    atoms = [atom for atom in found.atoms if atom.cls in wanted]
    at = 0
    for start, end in found.sentences:
        inside = []
        while at < len(atoms) and atoms[at].start < end:
            if atoms[at].start >= start:
                inside.append(atoms[at])
            at += 1
        if not inside:
            continue
        pieces, place = [], start
        for atom in inside:
            pieces.append(text[place : max(place, atom.start)])
            place = max(place, atom.end)
        anchor = content_words(" ".join((*pieces, text[place:end])))
        for atom in inside:
            yield atom.cls, atom.canon, anchor


def source_anchors(
    entries: Iterable[SourceEntry], analyses: Analyses, classes: Iterable[str]
) -> Iterator[tuple[RowKey, Anchor, int]]:
    """Key, anchor and `seq` of each anchored value of the entries, in order."""
    wanted = frozenset(classes)
    for entry in wanted_each(entries):
        if entry.erased:
            continue
        for analysed in analyses.of(entry):
            for cls, canon, anchor in anchors_of(entry.text_of(analysed.part), analysed.found, wanted):
                yield RowKey(UnitKind.ATOM, cls, canon), anchor, entry.seq
