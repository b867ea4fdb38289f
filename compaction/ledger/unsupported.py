"""What the summary says and no source does, and which source values stand altered or superseded because of it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from threadmark.compaction.content_words import content_words
from threadmark.compaction.input.analysis import Analyses
from threadmark.compaction.input.source import Role, SourceEntry
from threadmark.compaction.ledger.anchors import ANCHORED, Anchor, anchors_of, is_same_anchor, source_anchors
from threadmark.compaction.ledger.collect import Unit
from threadmark.compaction.ledger.evidence import Passage
from threadmark.compaction.ledger.outcomes import UnitOutcome, altered, is_kept, superseded
from threadmark.compaction.ledger.rows import Row, RowKey
from threadmark.compaction.ledger.terms import Status, UnitKind
from threadmark.db.execution.pools import wanted_each

__all__ = ["introduced_rows", "mark_altered", "mark_superseded"]

NEW_WORDS_MAX = 0.5  #: a clause with a larger share of words that no source has is an invention
CLAUSE_WORDS_MIN = 3


def introduced_rows(
    summary: Sequence[Passage], sources: Sequence[SourceEntry], known: Iterable[RowKey], analyses: Analyses
) -> Iterator[Row]:
    """Atoms and clauses of the new summary that stand in no source: by normal form, then by the string itself."""
    claims = [(passage, *claim) for passage in summary for claim in _claims(passage)]
    unsaid = _unsaid({key for _, key, *_ in claims}.difference(known), sources, analyses)
    texts = [text for entry in sources for _, text in entry.texts()] if unsaid else []
    seen: set[RowKey] = set()
    for passage, key, start, end, negative in wanted_each(claims):
        surface = passage.text[start:end]
        if key not in unsaid or key in seen or any(surface in text for text in texts):
            continue
        if key.unit is UnitKind.CLAUSE and not _is_new(surface, texts):
            continue
        seen.add(key)
        yield Row(
            unit=key.unit,
            cls=key.cls,
            canon=key.canon,
            text=surface,
            status=Status.INTRODUCED,
            negative=negative,
            kept_in=passage.place(start, end),
        )


def _unsaid(keys: set[RowKey], sources: Sequence[SourceEntry], analyses: Analyses) -> set[RowKey]:
    """Those that no source says by normal form."""
    # One look at the normal form spares most values of the thread a key.
    forms = {key.canon for key in keys}
    if not keys:
        return keys
    for entry in wanted_each(sources):
        for analysed in () if entry.erased else analyses.of(entry):
            for atom in analysed.found.atoms:
                if atom.canon in forms:
                    keys.discard(RowKey(UnitKind.ATOM, atom.cls, atom.canon))
            for clause in analysed.found.clauses:
                if clause.canon in forms:
                    keys.discard(RowKey(UnitKind.CLAUSE, clause.cls, clause.canon))
    return keys


def _claims(passage: Passage) -> Iterator[tuple[RowKey, int, int, bool | None]]:
    for atom in passage.found.atoms:
        yield RowKey(UnitKind.ATOM, atom.cls, atom.canon), atom.start, atom.end, None
    for clause in passage.found.clauses:
        yield RowKey(UnitKind.CLAUSE, clause.cls, clause.canon), clause.start, clause.end, clause.negative


def _is_new(clause: str, texts: Sequence[str]) -> bool:
    """Whether most of the clause's words stand in no source at all."""
    unknown = set(content_words(clause))
    count = len(unknown)
    if count < CLAUSE_WORDS_MIN:
        return False
    for text in texts:
        unknown -= content_words(text)
        if len(unknown) <= count * NEW_WORDS_MAX:
            return False
    return True


def mark_altered(
    outcomes: dict[RowKey, UnitOutcome],
    introduced: Sequence[Row],
    summary: Sequence[Passage],
    covered: Sequence[SourceEntry],
    analyses: Analyses,
) -> None:
    """A lost value is altered where the summary has an invented one of its class among the same words."""
    inventions = {row.key: row for row in introduced if row.unit is UnitKind.ATOM and row.cls in ANCHORED}
    if not inventions:
        return
    classes = {key.cls for key in inventions}
    suspects: list[tuple[Row, Anchor]] = [
        (inventions[key], anchor)
        for passage in summary
        for cls, canon, anchor in anchors_of(passage.text, passage.found, classes)
        if (key := RowKey(UnitKind.ATOM, cls, canon)) in inventions
    ]
    for key, anchor, _ in source_anchors(covered, analyses, classes):
        if key not in outcomes or outcomes[key].status is not Status.DROPPED:
            continue
        for row, invented in suspects:
            if row.cls == key.cls and row.kept_in is not None and is_same_anchor(anchor, invented):
                outcomes[key] = altered(outcomes[key], row.text, row.kept_in)
                break


def mark_superseded(
    outcomes: dict[RowKey, UnitOutcome],
    units: Mapping[RowKey, Unit],
    covered: Sequence[SourceEntry],
    analyses: Analyses,
) -> None:
    """A dropped value is superseded where a later one of its class, of the same thing, is kept."""
    spoken = [entry for entry in covered if entry.role in (Role.HUMAN, Role.AI)]
    kept: dict[tuple[str, str], list[tuple[RowKey, Anchor, int]]] = {}
    dropped: list[tuple[RowKey, Anchor, int]] = []
    for key, anchor, seq in source_anchors(spoken, analyses, ANCHORED):
        if key not in outcomes:
            continue
        if is_kept(outcomes[key]):
            for word in anchor:
                kept.setdefault((key.cls, word), []).append((key, anchor, seq))
        elif outcomes[key].status is Status.DROPPED:
            dropped.append((key, anchor, seq))
    for key, anchor, seq in wanted_each(dropped):
        later = next(
            (
                other
                for word in anchor
                for other, words, at in kept.get((key.cls, word), ())
                if at > seq and other != key and is_same_anchor(anchor, words)
            ),
            None,
        )
        if later is not None:
            outcomes[key] = superseded(outcomes[key], units[later].key.canon)
