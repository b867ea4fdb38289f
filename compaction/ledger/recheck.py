"""Verification from the log alone: the units of the entries, counted again, are the rows of the ledger."""

from collections.abc import Iterable, Sequence

from compaction.analysis import Analyses
from compaction.ledger.collect import collect_units
from compaction.ledger.rows import Row, Source
from compaction.ledger.seal import LedgerDamaged
from compaction.ledger.terms import Status
from compaction.source import SourceEntry

__all__ = ["recheck_rows"]


def recheck_rows(rows: Iterable[Row], covered: Sequence[SourceEntry], analyses: Analyses) -> None:
    """Raises LedgerDamaged where a unit of the covered entries has no row, a row no unit, or a place is not its own.

    What erased entries said cannot be counted again: of it, only that a row has no other source is known.
    """
    erased = {(entry.seq, entry.message) for entry in covered if entry.erased}
    expected = {
        key: tuple(source for source in unit.sources if (source.seq, source.message) not in erased)
        for key, unit in collect_units(covered, analyses).items()
    }
    for row in rows:
        if row.status is Status.INTRODUCED:
            continue
        remaining = tuple(source for source in row.sources if (source.seq, source.message) not in erased)
        if not remaining:
            expected.pop(row.key, None)
            continue
        _compare(row, remaining, expected.pop(row.key, None))
    unaccounted = [key for key, sources in expected.items() if sources]
    if unaccounted:
        raise LedgerDamaged(f"no row for {unaccounted[0].unit} {unaccounted[0].cls}")


def _compare(row: Row, found: tuple[Source, ...], counted: tuple[Source, ...] | None) -> None:
    if counted is None:
        raise LedgerDamaged(f"{row.unit} {row.row_id} stands in no entry")
    if counted != found:
        raise LedgerDamaged(f"the places of {row.unit} {row.row_id}")
