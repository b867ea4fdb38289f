"""Verification from the log alone: the units of the entries, counted again, are the rows of the ledger."""

from collections.abc import Sequence

from compaction.analysis import Analyses
from compaction.ledger.collect import Unit, collect_units
from compaction.ledger.rows import Row, Source, row_id_of
from compaction.ledger.seal import LedgerDamaged, content_digest
from compaction.ledger.terms import Status
from compaction.source import SourceEntry

__all__ = ["recheck_rows"]


def recheck_rows(rows: Sequence[Row], covered: Sequence[SourceEntry], analyses: Analyses) -> None:
    """Raises LedgerDamaged where a unit of the covered entries has no row, a row no unit, or a place is not its own.

    What erased entries said cannot be counted again: of it, only that a row has no other source is known.
    """
    erased = {(entry.seq, entry.message) for entry in covered if entry.erased}
    collected = collect_units(covered, analyses)
    expected = {
        key: tuple(source for source in unit.sources if (source.seq, source.message) not in erased)
        for key, unit in collected.items()
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
        if row.named and remaining == row.sources:
            _compare_words(row, collected[key])
    unaccounted = [key for key, sources in expected.items() if sources]
    if unaccounted:
        raise LedgerDamaged(f"no row for {unaccounted[0].unit} {unaccounted[0].cls}")


def _compare_words(row: Row, unit: Unit) -> None:
    """The words that a row gave up are those that the journal has."""
    if row.digest != content_digest(row.salt, unit.key.canon, unit.text):
        raise LedgerDamaged(f"the words of {row.unit} {row.row_id}")


def _compare(row: Row, found: tuple[Source, ...], counted: tuple[Source, ...] | None) -> None:
    if counted is None:
        raise LedgerDamaged(f"{row.unit} {row.row_id} stands in no entry")
    if counted != found:
        raise LedgerDamaged(f"the places of {row.unit} {row.row_id}")
