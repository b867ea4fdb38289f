"""What became of each unit, and why."""

import msgspec
import pytest

from tests.support.compaction_threads import ai, human, message, tool
from tests.support.ledgers import FULL, LEFT_OUT, MASKED, accounted, fates, row_of
from threadmark.compaction.input.source import Part, PartKind, Role
from threadmark.compaction.ledger import (
    Reason,
    Rules,
    Shown,
    Status,
    UnitKind,
)


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
def test_a_clause_is_quoted_reworded_changed_or_dropped(
    clause: str, summary: str, status: Status, flipped: bool
) -> None:
    """Where it is quoted, its place is in the row; only what was dropped has a reason."""
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


def test_a_message_is_whole_partial_a_duplicate_or_gone() -> None:
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
