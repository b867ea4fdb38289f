"""Units of a range, what a value is of, and what a summary says that no source does."""

from collections.abc import Sequence

import msgspec
import pytest

from tests.support.compaction_threads import ai, human, message, tool
from tests.support.ledgers import accounted, row_of
from threadmark.compaction.input.analysis import Analyses, analyse_text
from threadmark.compaction.input.source import Call, Part, PartKind, Role, SourceEntry, Trust
from threadmark.compaction.ledger import Passage, Reason, Row, RowKey, Source, Status, UnitKind
from threadmark.compaction.ledger.anchors import anchors_of, is_same_anchor, source_anchors
from threadmark.compaction.ledger.collect import Unit, collect_units
from threadmark.compaction.ledger.unsupported import introduced_rows


def units_of(*entries: SourceEntry) -> dict[tuple[str, str], Unit]:
    """The units by kind and text."""
    return {(unit.key.unit.value, unit.text): unit for unit in collect_units(entries, Analyses()).values()}


def passage(text: str) -> Passage:
    """A summary."""
    return Passage(text=text, found=analyse_text(text), persistent=True, segment_id="s")


def test_a_value_that_is_said_often_is_one_unit_with_all_its_places() -> None:
    """In all its spellings; its role and trust are those of the most trusted entry that says it."""
    unit = units_of(tool(1, "It is $900.", "c"), ai(2, "So $900.00 then."), human(3, "Yes, 900 USD."), ai(4, "$900!"))[
        "atom", "$900"
    ]

    assert [(source.seq, source.start, source.end) for source in unit.sources] == [
        (1, 6, 10),
        (2, 3, 10),
        (3, 5, 12),
        (4, 0, 4),
    ]
    assert (unit.role, unit.trust) == (Role.HUMAN, Trust.USER)
    assert unit.surfaces == ("$900", "$900.00", "900 USD")
    once = units_of(human(1, "It is $900."))["atom", "$900"]
    assert (once.surfaces, once.others, once.negative, once.marked, once.erased) == (
        ("$900",),
        None,
        None,
        False,
        False,
    )


def test_a_clause_says_whether_it_denies() -> None:
    """It is one unit wherever it is said, and its place is that of the sentence."""
    unit = units_of(human(1, "Hello. Never call Bob."), human(2, "NEVER call Bob!"))["clause", "Never call Bob."]

    assert (unit.negative, [(source.seq, source.start, source.end) for source in unit.sources]) == (
        True,
        [(1, 7, 22), (2, 0, 15)],
    )
    assert units_of(human(1, "You must call Bob."))["clause", "You must call Bob."].negative is False


def test_what_a_marked_entry_says_is_marked() -> None:
    """Whichever other message says it; what it does not say is not."""
    units = units_of(human(1, "It is $900 or 15%."), human(2, "It is $900.", critical=True))

    marked = {text: unit.marked for (_, text), unit in units.items()}
    assert marked == {"It is $900 or 15%.": False, "$900": True, "15%": False, "It is $900.": True}


def test_messages_and_parts_are_units_of_their_own() -> None:
    """Whole, each by its place; the text of a person's message is no part, the output of a tool is."""
    image = Part(kind=PartKind.MEDIA, media_type="image/png", digest="ab", size=9)
    secret = Part(kind=PartKind.OPAQUE, digest="cd", size=7)
    shown = message(1, Role.HUMAN, "", parts=(Part(text="Look."), image, secret), message=2, critical=True)
    asked = msgspec.structs.replace(ai(3, ""), calls=(Call(call_id="c", name="f", arguments='{"price": "$900"}'),))
    units = collect_units([shown, tool(2, "It is so.", "c"), asked], Analyses())

    found = {key: (unit.text, unit.sources[0], unit.part_kind) for key, unit in units.items()}
    assert found == {
        (UnitKind.MESSAGE, "human", "1.2"): ("Look.", Source(1, 2, 0, 0, 5), None),
        (UnitKind.PART, "media", "1.2.1"): ("image/png 9 bytes ab", Source(1, 2, 1, 0, 0), PartKind.MEDIA),
        (UnitKind.PART, "opaque", "1.2.2"): ("7 bytes cd", Source(1, 2, 2, 0, 0), PartKind.OPAQUE),
        (UnitKind.MESSAGE, "tool", "2.0"): ("It is so.", Source(2, 0, 0, 0, 9), None),
        (UnitKind.PART, "tool_output", "2.0.0"): ("It is so.", Source(2, 0, 0, 0, 9), PartKind.TEXT),
        (UnitKind.MESSAGE, "ai", "3.0"): ('{"price": "$900"}', Source(3, 0, 0, 0, 17), None),
        (UnitKind.ATOM, "money", "USD 900"): ("$900", Source(3, 0, 1, 11, 15), None),
        (UnitKind.ATOM, "quoted_string", "$900"): ("$900", Source(3, 0, 1, 11, 15), None),
    }
    assert [unit.marked for key, unit in units.items() if key.unit is UnitKind.MESSAGE] == [True, False, False]
    gone = units_of(message(1, Role.HUMAN, "", parts=(), erased=True))["message", ""]
    assert gone.erased


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a b", "a b", True),
        ("a b c", "a b d", True),  # two of four
        ("a b c", "a b d e", False),  # two of five
        ("a", "a", False),
        ("a b c d", "a b", True),
        ("a b", "c d", False),
    ],
)
def test_two_words_and_half_of_all_are_the_same_thing(one: str, other: str, same: bool) -> None:
    """With fewer in common two values are of different things."""
    assert is_same_anchor(frozenset(one.split()), frozenset(other.split())) == same


def anchored(text: str, *classes: str) -> list[tuple[str, str, set[str]]]:
    """The anchors of the values of these classes."""
    return [(cls, canon, set(anchor)) for cls, canon, anchor in anchors_of(text, analyse_text(text), classes)]


def test_a_value_is_of_the_words_around_it() -> None:
    """Those of its sentence, without any value of the classes; each value of one sentence has the same."""
    text = "Hello Bob. The big stand costs $900 and the small booth 5 EUR or 15%. Bye Eve."
    words = {"big", "stand", "costs", "small", "booth", "15"}

    assert anchored(text, "money") == [("money", "USD 900", words), ("money", "EUR 5", words)]
    assert anchored(text, "money", "percent") == [
        ("money", "USD 900", words - {"15"}),
        ("money", "EUR 5", words - {"15"}),
        ("percent", "15%", words - {"15"}),
    ]
    assert anchored(text, "date") == []
    assert anchored("$900 crates cost. Then boxes cost 5 EUR", "money") == [
        ("money", "USD 900", {"crates", "cost"}),
        ("money", "EUR 5", {"boxes", "cost"}),
    ]


def test_anchors_are_read_from_every_entry_that_has_words() -> None:
    """With the place of each; of classes that were asked for."""
    entries = [
        human(1, "The stand costs $900."),
        message(2, Role.HUMAN, "", parts=(), erased=True),
        human(3, "The booth costs 5 EUR or 15%."),
    ]

    found = list(source_anchors(entries, Analyses(), ["money"]))
    assert [(key, seq) for key, _, seq in found] == [
        (RowKey(UnitKind.ATOM, "money", "USD 900"), 1),
        (RowKey(UnitKind.ATOM, "money", "EUR 5"), 3),
    ]


def invented(summary: str, *entries: SourceEntry, known: Sequence[RowKey] = ()) -> list[Row]:
    """What a summary says and no entry does."""
    return list(introduced_rows([passage(summary)], entries, known, Analyses()))


def test_a_value_that_no_source_has_is_invented() -> None:
    """By its normal form, then by the string itself; it counts once, where it is first said."""
    said = [human(1, "It is $900, code 77abc."), message(2, Role.HUMAN, "", parts=(), erased=True)]

    (row,) = invented("It is 900 USD. It is $950, still $950.", *said)
    assert (row.unit, row.cls, row.canon, row.text, row.status) == (
        UnitKind.ATOM,
        "money",
        "USD 950",
        "$950",
        Status.INTRODUCED,
    )
    assert row.kept_in is not None
    assert (row.kept_in.segment_id, row.kept_in.start, row.kept_in.end) == ("s", 21, 25)
    assert (row.sources, row.negative) == ((), None)
    assert invented("It is $950.", *said, known=[row.key]) == []
    assert invented("It is $950.", human(1, "budget$950x")) == []


def test_a_clause_of_new_words_is_invented() -> None:
    """If more than half of its words stand in no source, and there are enough of them."""
    said = [human(1, "We have blue crates for Oslo.")]

    (row,) = invented("You must never burn green paper.", *said)
    assert (row.unit, row.cls, row.text, row.negative) == (
        UnitKind.CLAUSE,
        "constraint",
        "You must never burn green paper.",
        True,
    )
    assert invented("You must burn paper.", *said) == []  # two words of sense
    assert invented("You must burn blue crates, paper.", *said) == []  # two of four
    assert len(invented("You must burn blue paper boxes.", *said)) == 1  # three of four
    assert invented("You must burn paper boxes.", human(1, "burn"), human(2, "boxes")) == []
    assert len(invented("You must burn paper boxes.", human(1, "burn"), human(2, "burn"))) == 1
    assert invented("You must burn paper boxes.", human(1, "YOU must  burn paper boxes!")) == []


def test_a_lost_value_is_altered_by_an_invented_one_among_the_same_words() -> None:
    """Of its class; one among other words, or one that is kept too, alters nothing."""
    said = human(1, "The budget for the fair is $900.")
    altered = row_of(accounted([said], "The budget for the fair is $950."), "$900")
    assert (altered.status, altered.reason, altered.altered_to) == (Status.ALTERED, None, "$950")
    assert altered.kept_in is not None
    assert (altered.kept_in.start, altered.kept_in.end) == (27, 31)

    for summary in ("The hotel in Rome costs $950.", "The budget for the fair is 15%.", "The budget for the fair."):
        row = row_of(accounted([said], summary), "$900")
        assert (row.status, row.altered_to) == (Status.DROPPED, None), summary
    both = row_of(accounted([said], "The budget for the fair is $950 or $900."), "$900")
    assert both.status is Status.KEPT_VERBATIM


def test_the_first_invention_that_is_of_the_same_thing_alters_a_value() -> None:
    """In the order of the summary; one of another class or thing is passed over."""
    said = human(1, "The budget for the fair is $900.")
    summary = "The hotel in Rome costs $910. The budget for the fair is 15%. The budget for the fair is $950, not $960."

    assert row_of(accounted([said], summary), "$900").altered_to == "$950"


def test_a_dropped_value_is_superseded_by_a_later_one_that_is_kept() -> None:
    """Of the same class and thing, said by somebody after it; not by a tool, not before it, not by a dropped one."""
    old, new = "The budget for the fair is $900.", "The budget for the fair is $950."

    def reason(*entries: SourceEntry, summary: str = new) -> tuple[Reason | None, str | None]:
        row = row_of(accounted(entries, summary), "$900")
        return row.reason, row.superseded_by

    gone = (Reason.SUMMARISER_OMITTED, None)
    assert reason(human(1, old), ai(2, new)) == (Reason.SUPERSEDED, "USD 950")
    assert reason(human(2, old), ai(1, new)) == gone
    assert reason(human(1, old), human(1, new, message=1)) == gone
    assert reason(human(1, old), tool(2, new, "c")) == gone
    assert reason(tool(1, old, "c"), human(2, new)) == gone
    assert reason(human(1, old), ai(2, new), summary="Nothing.") == gone
    assert reason(human(1, old), ai(2, "The hotel in Rome costs $950."), summary="$950") == gone
    assert reason(human(1, old), ai(2, "The budget for the fair is 15%."), summary="15%") == gone
