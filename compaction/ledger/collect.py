"""Units of a range: every message, part, clause and distinct atom, with all the places where it occurs."""

from collections.abc import Iterable

import msgspec

from threadmark.compaction.atoms.atom import AtomClass
from threadmark.compaction.clauses.clause import ClauseClass
from threadmark.compaction.input.analysis import Analyses, PartAnalysis
from threadmark.compaction.input.source import PartKind, Role, SourceEntry, Trust
from threadmark.compaction.ledger.rows import RowKey, Source
from threadmark.compaction.ledger.terms import UnitKind
from threadmark.db.execution.pools import wanted_each

__all__ = ["UNIT_CLASSES", "Unit", "collect_units"]

_TOOL_OUTPUT = "tool_output"
#: Every class that a unit may have: of clauses, of atoms, of parts, and the roles of whole messages.
UNIT_CLASSES: tuple[str, ...] = (
    *(each.value for each in ClauseClass),
    *(each.value for each in AtomClass),
    _TOOL_OUTPUT,
    PartKind.MEDIA.value,
    PartKind.OPAQUE.value,
    *(each.value for each in Role),
)

_new_tuple = tuple.__new__  # half the cost of calling a NamedTuple


class Unit(msgspec.Struct, gc=False):
    """One unit while its account is made.

    `text` is how its first source writes it, `others` are further ways to write the same value.
    """

    key: RowKey
    text: str
    role: Role
    trust: Trust
    sources: list[Source]
    others: set[str] | None = None
    negative: bool | None = None
    marked: bool = False  #: an entry with it is marked critical
    erased: bool = False
    part_kind: PartKind | None = None

    @property
    def surfaces(self) -> tuple[str, ...]:
        """All ways to write it, the first one first."""
        return (self.text, *sorted(self.others)) if self.others else (self.text,)


def collect_units(entries: Iterable[SourceEntry], analyses: Analyses) -> dict[RowKey, Unit]:
    """The units of the entries by key, in the order in which they first occur.

    A clause or an atom that occurs often is one unit with many sources; its role and trust are those of the most
    trusted entry that says it. Each message and each part is a unit of its own.
    """
    units: dict[RowKey, Unit] = {}
    for entry in wanted_each(entries):
        _add_message(units, entry)
        _add_parts(units, entry)
        if entry.erased:
            continue
        for analysed in analyses.of(entry):
            _add_found(units, entry, analysed)
    return units


def _add_found(units: dict[RowKey, Unit], entry: SourceEntry, analysed: PartAnalysis) -> None:
    """The clauses and atoms of one part. It runs for every value of a thread, so it does little for each."""
    text, trust = entry.text_of(analysed.part), entry.trusted
    seq, message, part = entry.seq, entry.message, analysed.part
    for clause in analysed.found.clauses:
        start, end = clause.start, clause.end
        source = Source(seq, message, part, start, end)
        unit = _occur(units, entry, trust, (UnitKind.CLAUSE, clause.cls, clause.canon), text[start:end], source)
        unit.negative = clause.negative
    for atom in analysed.found.atoms:
        start, end = atom.start, atom.end
        source = Source(seq, message, part, start, end)
        _occur(units, entry, trust, (UnitKind.ATOM, atom.cls, atom.canon), text[start:end], source)


def _occur(
    units: dict[RowKey, Unit],
    entry: SourceEntry,
    trust: Trust,
    key: tuple[UnitKind, str, str],
    surface: str,
    source: Source,
) -> Unit:
    unit: Unit | None = units.get(key)  # type: ignore[call-overload]  # a RowKey is equal to its plain tuple
    if unit is None:
        named = _new_tuple(RowKey, key)
        unit = units[named] = Unit(named, surface, entry.role, trust, [source])
    else:
        unit.sources.append(source)
        if trust is not unit.trust and trust.rank < unit.trust.rank:
            unit.role, unit.trust = entry.role, trust
        if surface != unit.text:
            if unit.others is None:
                unit.others = set()
            unit.others.add(surface)
    if entry.critical:
        unit.marked = True
    return unit


def _add_message(units: dict[RowKey, Unit], entry: SourceEntry) -> None:
    key = RowKey(UnitKind.MESSAGE, entry.role, f"{entry.seq}.{entry.message}")
    text = entry.text()
    whole = Source(entry.seq, entry.message, 0, 0, len(text))
    units[key] = Unit(key, text, entry.role, entry.trusted, [whole], erased=entry.erased, marked=entry.critical)


def _add_parts(units: dict[RowKey, Unit], entry: SourceEntry) -> None:
    """Parts that may leave on their own: media, opaque items and the output of tools."""
    for number, part in enumerate(entry.parts):
        if part.kind is PartKind.TEXT and entry.role is not Role.TOOL:
            continue
        cls = _TOOL_OUTPUT if part.kind is PartKind.TEXT else part.kind.value
        key = RowKey(UnitKind.PART, cls, f"{entry.seq}.{entry.message}.{number}")
        text = part.text if part.kind is PartKind.TEXT else f"{part.media_type} {part.size} bytes {part.digest}".strip()
        whole = Source(entry.seq, entry.message, number, 0, len(part.text))
        units[key] = Unit(key, text, entry.role, entry.trusted, [whole], erased=entry.erased, part_kind=part.kind)
