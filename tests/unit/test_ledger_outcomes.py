"""What became of each unit, why, and what it weighs; the account over all of them."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from tests.support.compaction_threads import ai, human, message, tool
from threadmark.compaction.input.analysis import Analyses, analyse_text
from threadmark.compaction.input.source import Part, PartKind, Position, Role, SourceEntry
from threadmark.compaction.ledger import (
    GENESIS,
    Account,
    AccountUnbalanced,
    History,
    Ledger,
    Passage,
    Reason,
    Row,
    Rules,
    Shown,
    Status,
    UnitKind,
    close,
    dropped_in,
    judge,
    judge_critical,
    totals_of,
)
from threadmark.compaction.ledger.collect import collect_units
from threadmark.compaction.ledger.outcomes import UnitOutcome
from threadmark.compaction.ledger.rows import row_id_of

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


def test_a_value_is_kept_merged_or_gone() -> None:
    """In a spelling of its own, in another one, inside of a longer value, or nowhere."""
    said = "$900 for 5 EUR, host example.com, version 1.2.3"
    ledger = accounted([human(1, said)], "It is $900 and EUR 5 at https://example.com/a", tail="version 1.2.3")

    fate = {text: (status, reason) for (unit, text), (status, reason) in fates(ledger).items() if unit == "atom"}
    assert fate["$900"] == (Status.KEPT_VERBATIM, None)
    assert fate["5 EUR"] == (Status.KEPT_NORMALISED, None)
    assert fate["example.com"] == (Status.MERGED, None)
    assert fate["1.2.3"] == (Status.KEPT_VERBATIM, None)
    places = {text: row_of(ledger, text).kept_in for text in ("$900", "example.com", "1.2.3")}
    assert {text: place and (place.segment_id, place.seq) for text, place in places.items()} == {
        "$900": ("s", None),
        "example.com": ("s", None),
        "1.2.3": (None, 99),
    }


@pytest.mark.parametrize(
    ("clause", "summary", "status", "flipped"),
    [
        ("We must ship the blue crates to Oslo.", "We must ship the blue crates to Oslo.", Status.KEPT_VERBATIM, False),
        (
            "We must ship the blue crates to Oslo.",
            "WE MUST ship the blue crates to Oslo",
            Status.KEPT_NORMALISED,
            False,
        ),
        (
            "We must ship the blue crates to Oslo.",
            "We must now ship the blue crates to Oslo.",
            Status.KEPT_NORMALISED,
            False,
        ),
        ("We must ship the blue crates to Oslo.", "Ship blue crates to Oslo, we must.", Status.PARAPHRASED, False),
        ("We must ship the blue crates to Oslo.", "We must not ship the blue crates to Oslo.", Status.ALTERED, True),
        (
            "We must pay $900 for the stand at the fair.",
            "We must pay $950 for the stand at the fair.",
            Status.ALTERED,
            False,
        ),
        ("We must ship the blue crates to Oslo.", "The weather was fine.", Status.DROPPED, False),
    ],
)
def test_a_clause_is_told_in_its_words_in_others_or_otherwise(
    clause: str, summary: str, status: Status, flipped: bool
) -> None:
    """Where it is told, its place is in the row; only what was dropped has a reason."""
    row = row_of(accounted([human(1, f"Hello there. {clause}")], summary), clause, UnitKind.CLAUSE)

    assert (row.status, row.flipped) == (status, flipped)
    assert (row.kept_in is None, row.reason is not None) == (status is Status.DROPPED, status is Status.DROPPED)


def test_a_clause_has_the_values_that_are_inside_of_it() -> None:
    """One that stands beside it in the same message is not missed."""
    said = "It is $100. We must ship the blue crates to Oslo at $900. It is $200."
    summary = "Ship the blue crates to Oslo at $900, we must."
    clause = "We must ship the blue crates to Oslo at $900."

    assert row_of(accounted([human(1, said)], summary), clause, UnitKind.CLAUSE).status is Status.KEPT_NORMALISED
    call = ai(1, "Yes.", "c")
    both = msgspec.structs.replace(call, parts=(Part(text="I will pay $900 to Bob."), Part(text=said)))
    assert row_of(accounted([both], summary), clause, UnitKind.CLAUSE).status is Status.KEPT_NORMALISED


def test_a_message_is_whole_told_in_part_a_double_or_gone() -> None:
    """Whole only in what lasts; of two with the same words one is the double; erased and unreadable ones are so."""
    image = Part(kind=PartKind.MEDIA, media_type="image/png", digest="ab", size=9)
    secret = Part(kind=PartKind.OPAQUE, digest="cd", size=7)
    entries = [
        human(1, "The stand is in hall seven."),
        human(2, "It is $900 for the stand."),
        human(3, "Nobody repeats this one."),
        human(4, "Say it again, please."),
        human(5, "Say it again, please."),
        message(6, Role.HUMAN, "", parts=(), erased=True),
        message(7, Role.HUMAN, "", parts=(Part(text="Look at this."), image, secret)),
        human(8, "What stays in the tail."),
        tool(9, "The output of the tool is long.", "c"),
        human(10, ""),
        human(11, ""),
    ]
    summary = "The stand is in hall seven. $900 it is."
    ledger = accounted(entries, summary, tail="What stays in the tail.")
    by_seq = {
        (row.unit.value, row.sources[0].seq, row.cls): (row.status, row.reason)
        for row in ledger.rows
        if row.unit in (UnitKind.MESSAGE, UnitKind.PART)
    }
    omitted = (Status.DROPPED, Reason.SUMMARISER_OMITTED)

    assert by_seq == {
        ("message", 1, "human"): (Status.KEPT_VERBATIM, None),
        ("message", 2, "human"): (Status.PARAPHRASED, None),
        ("message", 3, "human"): omitted,
        ("message", 4, "human"): omitted,
        ("message", 5, "human"): (Status.MERGED, Reason.DUPLICATE),
        ("message", 6, "human"): (Status.ERASED, None),
        ("message", 7, "human"): omitted,
        ("part", 7, "media"): (Status.DROPPED, Reason.MEDIA),
        ("part", 7, "opaque"): (Status.DROPPED, Reason.OPAQUE),
        ("message", 8, "human"): omitted,
        ("message", 9, "tool"): omitted,
        ("part", 9, "tool_output"): omitted,
        ("message", 10, "human"): omitted,
        ("message", 11, "human"): omitted,
    }


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        ((FULL, FULL), Reason.SUMMARISER_OMITTED),
        ((FULL, LEFT_OUT), Reason.SUMMARISER_OMITTED),
        ((MASKED, MASKED), Reason.TOOL_OUTPUT_MASKED),
        ((MASKED, LEFT_OUT), Reason.NOT_SHOWN),
        ((LEFT_OUT, LEFT_OUT), Reason.NOT_SHOWN),
        ((MASKED, FULL), Reason.SUMMARISER_OMITTED),
        ((LEFT_OUT, None), Reason.NOT_SHOWN),
    ],
)
def test_why_a_value_is_gone(shown: tuple[Shown | None, ...], reason: Reason) -> None:
    """What holds for all its occurrences: masked everywhere, shown nowhere, or left out by the summariser."""
    entries = [human(1, "code OPS-2211 one"), human(2, "code OPS-2211 two")]
    forms = {entry.position: form for entry, form in zip(entries, shown, strict=True) if form is not None}
    plain = row_of(accounted(entries, shown=forms), "OPS-2211")

    assert (plain.status, plain.reason) == (Status.DROPPED, reason)
    key = plain.key
    budget = row_of(accounted(entries, shown=forms, over_budget=[key]), "OPS-2211")
    assert budget.reason is Reason.OVER_BUDGET


def test_a_value_of_a_class_that_the_policy_leaves_out_says_so() -> None:
    """Before all that the summariser did; a budget comes before the policy."""
    entries = [human(1, "It is $900.")]
    rules = Rules(excluded_classes=frozenset({"money"}))
    row = row_of(accounted(entries, rules=rules), "$900")
    assert row.reason is Reason.POLICY_EXCLUDED
    assert row_of(accounted(entries, rules=rules, over_budget=[row.key]), "$900").reason is Reason.OVER_BUDGET


def test_what_went_to_memory_is_promoted() -> None:
    """With the id that it has there, and only if it left the view."""
    entries = [human(1, "It is $900 or 5 EUR.")]
    keys = {text: row_of(accounted(entries), text).key for text in ("$900", "5 EUR")}
    ledger = accounted(entries, "$900", promoted={keys["$900"]: "m1", keys["5 EUR"]: "m2"})

    gone, kept = row_of(ledger, "5 EUR"), row_of(ledger, "$900")
    assert (gone.status, gone.reason, gone.promotion_id) == (Status.PROMOTED, None, "m2")
    assert (kept.status, kept.promotion_id) == (Status.KEPT_VERBATIM, None)


def test_a_unit_goes_on_with_its_history() -> None:
    """What was kept survived this compaction; what was lost was lost by the first that lost it, until it comes back."""
    entries = [human(1, "It is $900 or 5 EUR or 15%.")]
    keys = {text: row_of(accounted(entries), text).key for text in ("$900", "5 EUR", "15%")}
    history = {
        row_id_of(keys["$900"]): History(("c1",)),
        row_id_of(keys["5 EUR"]): History((), "c1"),
    }
    ledger = accounted(entries, "$900", history=history)

    told = {text: (row_of(ledger, text).survived, row_of(ledger, text).lost_at) for text in keys}
    assert told == {"$900": (("c1", "c2"), None), "5 EUR": ((), "c1"), "15%": ((), "c2")}
    fresh = row_of(accounted(entries, "15%"), "15%")
    assert (fresh.survived, fresh.lost_at) == (("c2",), None)


def test_what_is_critical_and_not_carried_by_what_lasts_is_lost() -> None:
    """A place in the tail is none, and other words are not enough; what a later value replaced is not missed."""
    entries = [
        human(1, "The fee for the stand is $900."),
        human(2, "The fee for the stand is $950."),
        human(3, "It was 15% or 2026-12-04, ask anna@example.org."),
        human(4, "We must ship the blue crates to Oslo."),
        ai(5, "It is $77."),
    ]
    summary = "The fee for the stand is $950. It is 15%. Ship blue crates to Oslo, we must."
    passages = [
        Passage(text=summary, found=analyse_text(summary), persistent=True, segment_id="s"),
        Passage(text="2026-12-04", found=analyse_text("2026-12-04"), persistent=False, seq=9),
    ]
    account = Account(
        compaction_id="c",
        covered=entries,
        others=[],
        passages=passages,
        new_segments={"s"},
        shown={entry.position: FULL for entry in entries},
    )
    analyses = Analyses()
    judged, units = judge_critical(account, analyses)

    assert [unit.text for unit in judged.lost(account.rules)] == [
        "2026-12-04",
        "anna@example.org",
        "We must ship the blue crates to Oslo.",
    ]
    assert units == collect_units(entries, analyses)
    assert {key for key in judged.units if key.cls == "human"} == set()
    whole = judge(account, analyses, units)
    assert whole.units is units
    assert whole.lost(account.rules) == judged.lost(account.rules)


def test_an_account_that_does_not_balance_is_not_closed() -> None:
    """A unit without a row, or a row without a unit, by class."""
    entries = [human(1, "It is $900.")]
    account = Account(
        compaction_id="c", covered=entries, others=[], passages=[], new_segments=(), shown={entries[0].position: FULL}
    )
    judged = judge(account, Analyses())
    extra = Row(unit=UnitKind.ATOM, cls="money", canon="EUR 1", text="1 EUR", status=Status.DROPPED)

    close(account, judged, b"x", GENESIS)
    with pytest.raises(AccountUnbalanced, match=r"1 units of atom money in the range, 2 in the ledger"):
        close(account, judged._replace(introduced=[extra]), b"x", GENESIS)
    with pytest.raises(AccountUnbalanced, match="0 units of atom date in the range, 1 in the ledger"):
        close(account, judged._replace(introduced=[msgspec.structs.replace(extra, cls="date")]), b"x", GENESIS)


@pytest.mark.parametrize(
    ("tokens", "shown", "ratio"),
    [
        ((30, 10), (FULL, MASKED), 0.75),
        ((30, 10), (FULL, FULL), 1.0),
        ((30, 10), (LEFT_OUT, MASKED), 0.0),
        ((0, 0), (FULL, LEFT_OUT), 0.5),
    ],
)
def test_the_share_that_the_summariser_saw(tokens: tuple[int, int], shown: tuple[Shown, Shown], ratio: float) -> None:
    """By tokens, by messages where nobody counted; erased messages count for nothing."""
    entries = [human(seq, "words", tokens=count) for seq, count in enumerate(tokens, start=1)]
    forms = {entry.position: form for entry, form in zip(entries, shown, strict=True)}
    erased = message(9, Role.HUMAN, "", parts=(), erased=True, tokens=500)

    assert accounted([*entries, erased], shown=forms).shown_ratio == ratio
    assert accounted([erased], shown={}).shown_ratio == 1.0


def test_sums_of_an_account() -> None:
    """By unit and status, with a total without inventions; what was dropped, and what of it was critical."""
    row = Row(unit=UnitKind.ATOM, cls="money", canon="a", text="a", status=Status.DROPPED, critical=True)
    other = msgspec.structs.replace(row, cls="date", critical=False)
    kept = msgspec.structs.replace(row, status=Status.KEPT_VERBATIM)
    new = msgspec.structs.replace(row, status=Status.INTRODUCED)
    clause = msgspec.structs.replace(row, unit=UnitKind.CLAUSE, cls="decision")
    rows = [row, row, other, kept, new, clause]

    assert totals_of(rows) == {
        "atom": {"total": 4, "dropped": 3, "kept_verbatim": 1, "introduced": 1},
        "clause": {"total": 1, "dropped": 1},
    }
    assert dropped_in(rows) == (4, 3)
    assert UnitOutcome(Status.DROPPED) == UnitOutcome(Status.DROPPED, None, None, False, None, False, None)
