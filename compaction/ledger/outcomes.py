"""What became of each unit, judged by what the new view says."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from threadmark.compaction.input.analysis import Analyses
from threadmark.compaction.input.source import PartKind, Position, SourceEntry
from threadmark.compaction.ledger.collect import Unit
from threadmark.compaction.ledger.evidence import Evidence
from threadmark.compaction.ledger.likeness import SummarySentences, Verdict
from threadmark.compaction.ledger.rows import Place, RowKey
from threadmark.compaction.ledger.terms import KEPT, Reason, Shown, Status, UnitKind
from threadmark.db.execution.pools import wanted_each

__all__ = ["Circumstances", "UnitOutcome", "altered", "decide_outcomes", "is_kept", "superseded"]


@dataclass(frozen=True, slots=True)
class UnitOutcome:
    """Status, reason and place of one unit."""

    status: Status
    reason: Reason | None = None
    kept_in: Place | None = None
    persistent: bool = False
    altered_to: str | None = None
    flipped: bool = False
    superseded_by: str | None = None


_GONE = {reason: UnitOutcome(Status.DROPPED, reason) for reason in Reason}


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What is known about the range beside its text: how it was shown, what a policy or a budget left out."""

    entries: Mapping[Position, SourceEntry]
    shown: Mapping[Position, Shown]
    excluded_classes: Collection[str] = ()
    over_budget: Collection[RowKey] = ()
    all_shown: bool = False  #: every entry was shown whole


def decide_outcomes(
    units: Mapping[RowKey, Unit],
    evidence: Evidence,
    summary: SummarySentences,
    analyses: Analyses,
    circumstances: Circumstances,
) -> dict[RowKey, UnitOutcome]:
    """Exactly one outcome for each unit."""
    outcomes: dict[RowKey, UnitOutcome] = {}
    carried: set[Position] = set()  # messages of which the summary carries something
    for key, unit in wanted_each(units.items()):
        if key.unit is UnitKind.CLAUSE:
            outcomes[key] = _clause(unit, evidence, summary, analyses, circumstances)
        elif key.unit is UnitKind.ATOM:
            outcomes[key] = _atom(unit, evidence, circumstances)
        else:
            continue
        place = outcomes[key].kept_in
        if place is not None and place.segment_id is not None:
            carried.update(Position(source.seq, source.message) for source in unit.sources)
    texts: dict[str, RowKey] = {}
    for key, unit in wanted_each(units.items()):
        if key.unit is UnitKind.MESSAGE or key.unit is UnitKind.PART:
            outcomes[key] = _whole(unit, evidence, carried, circumstances, texts)
    return outcomes


def _atom(unit: Unit, evidence: Evidence, circumstances: Circumstances) -> UnitOutcome:
    hit = evidence.atom(unit.key.cls, unit.key.canon, unit.surfaces)
    if hit is None:
        return _GONE[_reason(unit, circumstances)]
    if hit.inside:
        return UnitOutcome(Status.MERGED, None, hit.place, hit.persistent)
    status = Status.KEPT_VERBATIM if hit.verbatim else Status.KEPT_NORMALISED
    return UnitOutcome(status, None, hit.place, hit.persistent)


def _clause(
    unit: Unit, evidence: Evidence, summary: SummarySentences, analyses: Analyses, circumstances: Circumstances
) -> UnitOutcome:
    hit = evidence.clause(unit.key.canon, unit.surfaces)
    if hit is not None:
        status = Status.KEPT_VERBATIM if hit.verbatim else Status.KEPT_NORMALISED
        return UnitOutcome(status, None, hit.place, hit.persistent)
    source = unit.sources[0]
    entry = circumstances.entries[Position(source.seq, source.message)]
    found = next(each.found for each in analyses.of(entry) if each.part == source.part)
    atoms = [atom for atom in found.atoms if source.start <= atom.start and atom.end <= source.end]
    likeness = summary.judge(unit.text, atoms, negative=bool(unit.negative))
    match likeness.verdict if likeness else None:
        case Verdict.SAME:
            return UnitOutcome(Status.KEPT_NORMALISED, None, likeness.place if likeness else None, persistent=True)
        case Verdict.PARAPHRASE:
            return UnitOutcome(Status.PARAPHRASED, None, likeness.place if likeness else None, persistent=True)
        case Verdict.FLIPPED:
            return UnitOutcome(Status.ALTERED, None, likeness.place if likeness else None, flipped=True)
        case Verdict.OTHER_VALUE:
            return UnitOutcome(Status.ALTERED, None, likeness.place if likeness else None)
        case None:
            return _GONE[_reason(unit, circumstances)]


def _whole(  # noqa: PLR0911 - one for each fate
    unit: Unit,
    evidence: Evidence,
    carried: set[Position],
    circumstances: Circumstances,
    texts: dict[str, RowKey],
) -> UnitOutcome:
    """A message or a part: whole in the view, carried in part, a duplicate of another one, or gone."""
    if unit.erased:
        return UnitOutcome(Status.ERASED)
    if unit.part_kind is PartKind.MEDIA:
        return UnitOutcome(Status.DROPPED, Reason.MEDIA)
    if unit.part_kind is PartKind.OPAQUE:
        return UnitOutcome(Status.DROPPED, Reason.OPAQUE)
    hit = evidence.literal(unit.text) if unit.text else None
    if hit is not None and hit.persistent:
        return UnitOutcome(Status.KEPT_VERBATIM, None, hit.place, persistent=True)
    if unit.key.unit is UnitKind.MESSAGE and unit.text and texts.setdefault(unit.text, unit.key) != unit.key:
        return UnitOutcome(Status.MERGED, Reason.DUPLICATE)
    if Position(unit.sources[0].seq, unit.sources[0].message) in carried:
        return UnitOutcome(Status.PARAPHRASED)
    return _GONE[_reason(unit, circumstances)]


def _reason(unit: Unit, circumstances: Circumstances) -> Reason:
    """Why it is gone: the first of the known causes that holds for all its occurrences."""
    if unit.key in circumstances.over_budget:
        return Reason.OVER_BUDGET
    if unit.key.cls in circumstances.excluded_classes:
        return Reason.POLICY_EXCLUDED
    if circumstances.all_shown:
        return Reason.SUMMARISER_OMITTED
    forms = {circumstances.shown.get(Position(source.seq, source.message), Shown.LEFT_OUT) for source in unit.sources}
    if forms == {Shown.MASKED}:
        return Reason.TOOL_OUTPUT_MASKED
    if Shown.FULL not in forms:
        return Reason.NOT_SHOWN
    return Reason.SUMMARISER_OMITTED


def is_kept(fate: UnitOutcome) -> bool:
    """Whether the view has the unit's string or value."""
    return fate.status in KEPT


def superseded(fate: UnitOutcome, by: str) -> UnitOutcome:
    """The fate of a dropped value that a later one, which is kept, replaced."""
    return replace(fate, reason=Reason.SUPERSEDED, superseded_by=by)


def altered(fate: UnitOutcome, to: str, place: Place) -> UnitOutcome:
    """The fate of a lost value in whose place the view has another one."""
    return replace(fate, status=Status.ALTERED, reason=None, altered_to=to, kept_in=place)
