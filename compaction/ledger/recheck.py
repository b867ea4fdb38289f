"""Verification from the log alone: the units of the entries, counted again, are the rows of the ledger."""

from collections.abc import Sequence

from threadmark.compaction.input.analysis import Analyses
from threadmark.compaction.input.source import SourceEntry
from threadmark.compaction.ledger.collect import Unit, collect_units
from threadmark.compaction.ledger.rows import Row, Source, row_id_of
from threadmark.compaction.ledger.seal import LedgerDamaged, content_digest
from threadmark.compaction.ledger.terms import Status, UnitKind

__all__ = ["recheck_rows"]

_FOUND = (UnitKind.CLAUSE, UnitKind.ATOM)  #: what an extractor finds; messages and parts need none


def recheck_rows(
    rows: Sequence[Row], covered: Sequence[SourceEntry], analyses: Analyses, *, recounts: bool = True
) -> None:
    """Raises LedgerDamaged where a unit of the covered entries has no row, a row no unit, or a place is not its own.

    What erased entries said cannot be counted again: of it, only that a row has no other source is known. With
    `recounts` False the clauses and values are those of another extractor: each is looked up at its place, and that
    there are no others is not known.
    """
    if not recounts:
        found = [row for row in rows if row.unit in _FOUND and row.status is not Status.INTRODUCED]
        _look_up(found, covered)
        rows = [row for row in rows if row.unit not in _FOUND]
    erased = {(entry.seq, entry.message) for entry in covered if entry.erased}
    collected = collect_units(covered, analyses)
    expected = {
        key: tuple(source for source in unit.sources if (source.seq, source.message) not in erased)
        for key, unit in collected.items()
        if recounts or key.unit not in _FOUND
    }
    by_name = {row_id_of(key): key for key in expected} if any(row.named for row in rows) else {}
    for row in rows:
        if row.status is Status.INTRODUCED:
            continue
        key = by_name.get(row.named, row.key)
        remaining = tuple(source for source in row.sources if (source.seq, source.message) not in erased)
        if not remaining:
            expected.pop(key, None)
            continue
        _compare(row, remaining, expected.pop(key, None))
        if remaining == row.sources and (row.named or row.unit not in _FOUND):
            _compare_words(row, collected[key])
    unaccounted = [key for key, sources in expected.items() if sources]
    if unaccounted:
        raise LedgerDamaged(f"no row for {unaccounted[0].unit} {unaccounted[0].cls}")


def _look_up(rows: Sequence[Row], covered: Sequence[SourceEntry]) -> None:
    """Every place of the rows is inside of its entry, and one of them has the words of the row."""
    entries = {(entry.seq, entry.message): entry for entry in covered}
    for row in rows:
        spans = set()
        for source in row.sources:
            entry = entries.get((source.seq, source.message))
            if entry is None:
                raise LedgerDamaged(f"{row.unit} {row.row_id} stands in no entry")
            if not entry.erased:
                span = entry.text_of(source.part)[source.start : source.end]
                if not 0 <= source.start < source.end == source.start + len(span):
                    raise LedgerDamaged(f"the places of {row.unit} {row.row_id}")
                spans.add(span)
        if row.text and spans and row.text not in spans:
            raise LedgerDamaged(f"the words of {row.unit} {row.row_id}")


def _compare_words(row: Row, unit: Unit) -> None:
    """The words that a row gave up are those that the journal has."""
    if row.digest != content_digest(row.salt, unit.key.canon, unit.text):
        raise LedgerDamaged(f"the words of {row.unit} {row.row_id}")


def _compare(row: Row, found: tuple[Source, ...], counted: tuple[Source, ...] | None) -> None:
    if counted is None:
        raise LedgerDamaged(f"{row.unit} {row.row_id} stands in no entry")
    if counted != found:
        raise LedgerDamaged(f"the places of {row.unit} {row.row_id}")
