"""Repair of a model's draft: lines that say something false about what matters are taken out; the facts come back."""

from collections.abc import Iterable, Iterator, Sequence

from threadmark.compaction.ledger import Judged, Place, Rules, Status, UnitKind
from threadmark.compaction.ledger.weights import is_critical
from threadmark.compaction.summary import Line, text_of

__all__ = ["without_false_lines"]


def without_false_lines(lines: Sequence[Line], judged: Judged, rules: Rules) -> tuple[Line, ...]:
    """The lines without those that invent or alter a critical value, or turn a rule into its opposite."""
    false_places = {place.start for place in _false_places(judged, rules)}
    kept, start = [], 0
    for line, end in zip(lines, _line_ends(lines), strict=True):
        if not any(start <= place < end for place in false_places):
            kept.append(line)
        start = end
    return tuple(kept)


def _false_places(judged: Judged, rules: Rules) -> Iterator[Place]:
    for row in judged.introduced:
        if row.kept_in is not None and row.unit is UnitKind.ATOM and row.cls in rules.critical_atoms:
            yield row.kept_in
        if row.kept_in is not None and row.unit is UnitKind.CLAUSE and row.cls in rules.critical_clauses:
            yield row.kept_in
    for key, fate in judged.outcomes.items():
        critical = is_critical(judged.units[key], rules.critical_atoms, rules.critical_clauses)
        if fate.status is Status.ALTERED and fate.kept_in is not None and critical:
            yield fate.kept_in


def _line_ends(lines: Sequence[Line]) -> Iterable[int]:
    """Where each line ends in the text of all of them."""
    for count in range(1, len(lines) + 1):
        yield len(text_of(lines[:count]))
