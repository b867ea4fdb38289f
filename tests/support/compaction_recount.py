"""A second, naive count of a compaction's account: it shares the extractors with the ledger, and nothing else."""

from collections import Counter
from collections.abc import Sequence

from threadmark.compaction.atoms import extract_atoms
from threadmark.compaction.clauses import extract_clauses
from threadmark.compaction.input.source import PartKind, Role, SourceEntry
from threadmark.compaction.ledger import Ledger, Status, UnitKind

__all__ = ["recount"]

Unit = tuple[str, str, str]


def recount(ledger: Ledger, covered: Sequence[SourceEntry], view_texts: Sequence[str]) -> None:
    """Assert that the ledger counts what is there: units, occurrences, places, and what the view has.

    `view_texts` are all texts of the new view that have words of the conversation.
    """
    occurrences = _occurrences(covered)
    rows = [row for row in ledger.rows if row.status is not Status.INTRODUCED]

    assert Counter((row.unit, row.cls, row.canon) for row in rows) == Counter(set(occurrences)), "one row for each unit"
    for unit, cls in {(row.unit, row.cls) for row in rows}:
        total = len({each for each in occurrences if each[:2] == (unit, cls)})
        counts = Counter(row.status for row in rows if (row.unit, row.cls) == (unit, cls))
        assert sum(counts.values()) == total, (unit, cls)
        assert Status.INTRODUCED not in counts
    for row in rows:
        assert len(row.sources) == occurrences[row.unit, row.cls, row.canon], row
        assert (row.reason is not None) == (row.status is Status.DROPPED) or row.status is Status.MERGED, row
    _check_places(ledger, covered)
    _check_kept(ledger, view_texts)


def _occurrences(covered: Sequence[SourceEntry]) -> Counter[Unit]:
    found: Counter[Unit] = Counter()
    for entry in covered:
        found[UnitKind.MESSAGE, entry.role, f"{entry.seq}.{entry.message}"] += 1
        for number, part in enumerate(entry.parts):
            if part.kind is not PartKind.TEXT:
                found[UnitKind.PART, part.kind, f"{entry.seq}.{entry.message}.{number}"] += 1
            elif entry.role is Role.TOOL:
                found[UnitKind.PART, "tool_output", f"{entry.seq}.{entry.message}.{number}"] += 1
        texts = [] if entry.erased else [part.text for part in entry.parts] + [call.arguments for call in entry.calls]
        for text in texts:
            if text == "{}":
                continue
            found.update((UnitKind.ATOM, atom.cls, atom.canon) for atom in extract_atoms(text))
            found.update((UnitKind.CLAUSE, clause.cls, clause.canon) for clause in extract_clauses(text))
    return found


def _check_places(ledger: Ledger, covered: Sequence[SourceEntry]) -> None:
    """Every source is the exact place of the unit in its entry."""
    by_position = {(entry.seq, entry.message): entry for entry in covered}
    for row in ledger.rows:
        spans = []
        for source in row.sources:
            entry = by_position[source.seq, source.message]
            if row.unit in (UnitKind.ATOM, UnitKind.CLAUSE):
                spans.append(entry.text_of(source.part)[source.start : source.end])
        assert not spans or row.text in spans, row
        assert all(spans), row


def _check_kept(ledger: Ledger, view_texts: Sequence[str]) -> None:
    """What is kept word for word is in the view; a value that is dropped is not."""
    values = {(atom.cls, atom.canon) for text in view_texts for atom in extract_atoms(text)}
    joined = "\n".join(view_texts)
    for row in ledger.rows:
        if row.unit not in (UnitKind.ATOM, UnitKind.CLAUSE):
            continue
        if row.status is Status.KEPT_VERBATIM and row.unit is UnitKind.CLAUSE:
            assert row.text in joined, row
        if row.unit is UnitKind.ATOM and row.status in (Status.DROPPED, Status.PROMOTED):
            assert (row.cls, row.canon) not in values, row
        if row.unit is UnitKind.ATOM and row.status is Status.INTRODUCED:
            assert row.text in joined, row
