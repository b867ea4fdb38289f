"""The last lines of a segment: what it does not carry, by the ledger's own count."""

from collections import Counter
from collections.abc import Iterable

from threadmark.compaction.ledger import Reason, Row, Status, UnitKind

__all__ = ["footer_of"]

CLASS_COUNT_MAX = 6
SEQ_COUNT_MAX = 12


def footer_of(rows: Iterable[Row]) -> str:
    """`Not in this summary: 9 path, 31 command_line; …`; empty where nothing is gone.

    Critical things that found no room are pointed at, entry by entry.
    """
    counts: Counter[str] = Counter()
    unheld: set[int] = set()
    for row in rows:
        if row.status is Status.DROPPED and row.unit in (UnitKind.ATOM, UnitKind.CLAUSE):
            counts[row.cls] += 1
            if row.critical and row.reason is Reason.OVER_BUDGET:
                unheld.add(row.sources[-1].seq)
    if not counts:
        return ""
    named = ", ".join(
        f"{count} {cls}"
        for cls, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:CLASS_COUNT_MAX]
    )
    footer = f"\nNot in this summary: {named}. Ask recall_dropped for them."
    if unheld:
        seqs = sorted(unheld)
        more = "" if len(seqs) <= SEQ_COUNT_MAX else f" and {len(seqs) - SEQ_COUNT_MAX} more"
        footer += f"\nWithout room, and important: entries {', '.join(map(str, seqs[:SEQ_COUNT_MAX]))}{more}."
    return footer
