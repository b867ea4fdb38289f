"""The account of a compaction: every unit of the covered range in exactly one status, from the original entries."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from threadmark.compaction.input.analysis import Analyses
from threadmark.compaction.input.source import Position, SourceEntry
from threadmark.compaction.ledger.collect import Unit, collect_units
from threadmark.compaction.ledger.evidence import Evidence, Passage
from threadmark.compaction.ledger.likeness import SummarySentences
from threadmark.compaction.ledger.outcomes import Circumstances, UnitOutcome, decide_outcomes
from threadmark.compaction.ledger.rows import Row, RowKey, row_id_of
from threadmark.compaction.ledger.rules import Rules
from threadmark.compaction.ledger.seal import root_of, seal_rows
from threadmark.compaction.ledger.survival import History, survive
from threadmark.compaction.ledger.terms import Reason, Shown, Status
from threadmark.compaction.ledger.unsupported import introduced_rows, mark_altered, mark_superseded
from threadmark.compaction.ledger.weights import is_critical, salience
from threadmark.db.execution.pools import wanted_each

__all__ = [
    "Account",
    "AccountUnbalanced",
    "Dropped",
    "Judged",
    "Ledger",
    "balance_of",
    "close",
    "dropped_in",
    "judge",
    "judge_critical",
    "totals_of",
]


class AccountUnbalanced(Exception):
    """Units were counted that have no row, or the other way round; nothing may be committed."""

    def __init__(self, unit: str, cls: str, total: int, counted: int) -> None:
        super().__init__(f"{total} units of {unit} {cls} in the range, {counted} in the ledger")


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What an account is made of.

    `covered` are the entries that leave the view; `others` the rest of the thread, which counts as a source when
    inventions are looked for. `passages` are all texts of the new view, `new_segments` those that this compaction
    wrote. `history` says what earlier compactions of the covered range did with a unit.
    """

    compaction_id: str
    covered: Sequence[SourceEntry]
    others: Sequence[SourceEntry]
    passages: Sequence[Passage]
    new_segments: Collection[str]
    shown: Mapping[Position, Shown]
    rules: Rules = Rules()
    over_budget: Collection[RowKey] = ()
    promoted: Mapping[RowKey, str] = {}
    history: Mapping[str, History] = {}


class Judged(NamedTuple):
    """Units, their fates and what was invented, before the account is closed."""

    units: dict[RowKey, Unit]
    outcomes: dict[RowKey, UnitOutcome]
    introduced: list[Row]

    def lost(self, rules: Rules) -> list[Unit]:
        """Critical units that no lasting part of the view carries word for word or by value."""
        carried = (Status.KEPT_VERBATIM, Status.KEPT_NORMALISED, Status.MERGED)
        return [
            unit
            for key, unit in self.units.items()
            if is_critical(unit, rules.critical_atoms, rules.critical_clauses)
            and not (self.outcomes[key].status in carried and self.outcomes[key].persistent)
            and self.outcomes[key].reason is not Reason.SUPERSEDED
        ]


class Dropped(NamedTuple):
    """How many units of a ledger are dropped, of every kind, and how many of those are critical."""

    unit_count: int
    critical_count: int


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """The closed account. `root` covers the rows and `previous_root`."""

    compaction_id: str
    rows: tuple[Row, ...]
    previous_root: str
    root: str
    shown_ratio: float  #: tokens of the covered range that the summariser saw, of all

    def balance(self) -> dict[tuple[str, str], Counter[str]]:
        """Counts by status for each unit and class, `introduced` among them."""
        return balance_of(self.rows)


def judge(account: Account, analyses: Analyses, units: dict[RowKey, Unit] | None = None) -> Judged:
    """Decide what became of each unit, and what was invented. `units` are those of a judgement of the same range."""
    analyses.learn((*account.covered, *account.others))
    units = collect_units(account.covered, analyses) if units is None else units
    summary = [passage for passage in account.passages if passage.segment_id in account.new_segments]
    circumstances = Circumstances(
        entries={entry.position: entry for entry in account.covered},
        shown=account.shown,
        excluded_classes=account.rules.excluded_classes,
        over_budget=account.over_budget,
        all_shown=all(form is Shown.FULL for form in account.shown.values()),
    )
    outcomes = decide_outcomes(units, Evidence(account.passages), SummarySentences(summary), analyses, circumstances)
    introduced = list(introduced_rows(summary, [*account.covered, *account.others], units, analyses))
    mark_altered(outcomes, introduced, summary, account.covered, analyses)
    mark_superseded(outcomes, units, account.covered, analyses)
    return Judged(units, outcomes, introduced)


def judge_critical(account: Account, analyses: Analyses) -> tuple[Judged, dict[RowKey, Unit]]:
    """Judge only what must not be lost, for a draft in the making; and all units, for the last judgement."""
    analyses.learn((*account.covered, *account.others))
    units = collect_units(account.covered, analyses)
    rules = account.rules
    critical = {
        key: unit for key, unit in units.items() if is_critical(unit, rules.critical_atoms, rules.critical_clauses)
    }
    return judge(account, analyses, critical), units


def close(account: Account, judged: Judged, secret: bytes, previous_root: str) -> Ledger:
    """Make the rows, seal and chain them.

    `secret` is fresh random bytes. Raises AccountUnbalanced where rows and units do not match, which is a defect.
    """
    # What no earlier ledger tells of has one of a few histories: they are made once, not for every row.
    fresh = {status: survive(None, account.compaction_id, status) for status in Status}
    rows = [_row(account, unit, judged.outcomes[key], fresh) for key, unit in wanted_each(judged.units.items())]
    rows.extend(judged.introduced)
    sealed = seal_rows(rows, secret)
    _check(judged.units, sealed)
    return Ledger(
        compaction_id=account.compaction_id,
        rows=tuple(sealed),
        previous_root=previous_root,
        root=root_of(sealed, previous_root),
        shown_ratio=_shown_ratio(account),
    )


def _row(account: Account, unit: Unit, fate: UnitOutcome, fresh: Mapping[Status, History]) -> Row:
    status, reason = fate.status, fate.reason
    promotion = account.promoted.get(unit.key) if account.promoted and status is Status.DROPPED else None
    if promotion is not None:
        status, reason = Status.PROMOTED, None
    before = account.history.get(row_id_of(unit.key)) if account.history else None
    history = fresh[status] if before is None else survive(before, account.compaction_id, status)
    kind, cls, canon = unit.key
    return Row(
        unit=kind,
        cls=cls,
        canon=canon,
        text=unit.text,
        status=status,
        sources=tuple(unit.sources),
        reason=reason,
        critical=is_critical(unit, account.rules.critical_atoms, account.rules.critical_clauses),
        role=unit.role,
        trust=unit.trust,
        salience=salience(unit),
        negative=unit.negative,
        flipped=fate.flipped,
        kept_in=fate.kept_in,
        altered_to=fate.altered_to,
        superseded_by=fate.superseded_by,
        promotion_id=promotion,
        survived=history.survived,
        lost_at=history.lost_at,
    )


def balance_of(rows: Iterable[Row]) -> dict[tuple[str, str], Counter[str]]:
    """Counts by status for each unit and class."""
    balance: dict[tuple[str, str], Counter[str]] = {}
    for row in rows:
        balance.setdefault((row.unit, row.cls), Counter())[row.status] += 1
    return balance


def dropped_in(rows: Iterable[Row]) -> Dropped:
    """The counts that a summary's header, a receipt and a preview give."""
    gone = [row for row in rows if row.status is Status.DROPPED]
    return Dropped(len(gone), sum(row.critical for row in gone))


def totals_of(rows: Iterable[Row]) -> dict[str, dict[str, int]]:
    """For each unit its statuses and their sum, `total`; `introduced` stands beside them and is not in the sum."""
    totals: dict[str, dict[str, int]] = {}
    for (unit, _), counts in balance_of(rows).items():
        into = totals.setdefault(str(unit), {"total": 0})
        for status, count in counts.items():
            into[str(status)] = into.get(str(status), 0) + count
            into["total"] += count if status != Status.INTRODUCED else 0
    return totals


def _check(units: Mapping[RowKey, Unit], rows: Sequence[Row]) -> None:
    totals = Counter((key.unit, key.cls) for key in units)
    counted = Counter((row.unit, row.cls) for row in rows if row.status is not Status.INTRODUCED)
    for unit, cls in totals | counted:
        if totals[unit, cls] != counted[unit, cls]:
            raise AccountUnbalanced(unit, cls, totals[unit, cls], counted[unit, cls])


def _shown_ratio(account: Account) -> float:
    """By tokens; by messages where tokens were not counted; 1.0 for a range without any."""
    weights = {entry.position: entry.tokens or 1 for entry in account.covered if not entry.erased}
    total = sum(weights.values())
    shown = sum(weight for position, weight in weights.items() if account.shown.get(position) is Shown.FULL)
    return shown / total if total else 1.0
