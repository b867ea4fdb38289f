"""The ledger: what a summary kept, changed, invented and dropped, unit by unit, with the way back."""

from typing import TYPE_CHECKING

from threadmark.lazy import lazy_exports

if TYPE_CHECKING:
    from threadmark.compaction.ledger.account import (
        Account,
        AccountUnbalanced,
        Judged,
        Ledger,
        balance_of,
        close,
        dropped_in,
        judge,
        judge_critical,
        totals_of,
    )
    from threadmark.compaction.ledger.collect import UNIT_CLASSES
    from threadmark.compaction.ledger.evidence import Passage
    from threadmark.compaction.ledger.recheck import recheck_rows
    from threadmark.compaction.ledger.rows import Place, Row, RowKey, Source
    from threadmark.compaction.ledger.rules import Rules
    from threadmark.compaction.ledger.seal import GENESIS, LedgerDamaged, erase_rows, hash_rows, root_of, verify_rows
    from threadmark.compaction.ledger.survival import History, histories
    from threadmark.compaction.ledger.terms import KEPT, Reason, Shown, Status, UnitKind
else:
    __getattr__, __dir__ = lazy_exports(__name__, __file__)

__all__ = [
    "GENESIS",
    "KEPT",
    "UNIT_CLASSES",
    "Account",
    "AccountUnbalanced",
    "History",
    "Judged",
    "Ledger",
    "LedgerDamaged",
    "Passage",
    "Place",
    "Reason",
    "Row",
    "RowKey",
    "Rules",
    "Shown",
    "Source",
    "Status",
    "UnitKind",
    "balance_of",
    "close",
    "dropped_in",
    "erase_rows",
    "hash_rows",
    "histories",
    "judge",
    "judge_critical",
    "recheck_rows",
    "root_of",
    "totals_of",
    "verify_rows",
]
