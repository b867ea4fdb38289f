"""Ledgers of a few entries and a summary, for the tests of single units."""

from collections.abc import Sequence
from typing import Any

from threadmark.compaction.input.analysis import Analyses, analyse_text
from threadmark.compaction.input.source import Position, SourceEntry
from threadmark.compaction.ledger import (
    GENESIS,
    Account,
    Ledger,
    Passage,
    Reason,
    Row,
    Shown,
    Status,
    UnitKind,
    close,
    judge,
)

__all__ = ["FULL", "LEFT_OUT", "MASKED", "accounted", "fates", "row_of"]

FULL, MASKED, LEFT_OUT = Shown.FULL, Shown.MASKED, Shown.LEFT_OUT


def accounted(
    covered: Sequence[SourceEntry],
    summary: str = "",
    *,
    tail: str = "",
    shown: dict[Position, Shown] | None = None,
    **changes: Any,
) -> Ledger:
    """The ledger of entries that left the view, of which a summary and a tail stay."""
    passages = [Passage(text=summary, found=analyse_text(summary), persistent=True, segment_id="s")]
    if tail:
        passages.append(Passage(text=tail, found=analyse_text(tail), persistent=False, seq=99))
    account = Account(
        compaction_id="c2",
        covered=covered,
        others=[],
        passages=passages,
        new_segments={"s"},
        shown={entry.position: FULL for entry in covered} if shown is None else shown,
        **changes,
    )
    analyses = Analyses()
    return close(account, judge(account, analyses), b"x" * 32, GENESIS)


def fates(ledger: Ledger) -> dict[tuple[str, str], tuple[Status, Reason | None]]:
    """Status and reason of each unit, by kind and text."""
    return {(row.unit.value, row.text): (row.status, row.reason) for row in ledger.rows}


def row_of(ledger: Ledger, text: str, unit: UnitKind = UnitKind.ATOM) -> Row:
    """The row of a unit."""
    return next(row for row in ledger.rows if row.text == text and row.unit is unit)
