"""Where a value, a clause or a string is in the new view, and where it only seems to be."""

import pytest

from threadmark.compaction.input.analysis import analyse_text
from threadmark.compaction.ledger import Passage, Place
from threadmark.compaction.ledger.evidence import Evidence


def lasting(text: str, segment_id: str = "s") -> Passage:
    """A summary."""
    return Passage(text=text, found=analyse_text(text), persistent=True, segment_id=segment_id)


def passing(text: str, seq: int = 9) -> Passage:
    """An entry of the tail."""
    return Passage(text=text, found=analyse_text(text), persistent=False, seq=seq, message=1, part=2)


@pytest.mark.parametrize(
    ("text", "string", "at"),
    [
        ("5", "5", 0),
        ("it is 5.", "5", 6),
        ("15 or 5", "5", 6),
        ("51 or 5", "5", 6),
        ("x5 or 5", "5", 6),
        ("5x or 5", "5", 6),
        ("_5 or 5", "5", 6),
        ("5_ or 5", "5", 6),
        ("1.5", "5", -1),
        ("1,5", "5", -1),
        ("1-5", "5", -1),
        ("5.1", "5", -1),
        ("5,1", "5", -1),
        ("5-1", "5", -1),
        ("5:1", "5", -1),
        ("x.5", "5", 2),
        ("5.x", "5", 0),
        ("1/5", "5", 2),
        ("1:5", "5", 2),
        (".5.", "5", 1),
        ("12.5 then 5", "5", 10),
        ("a.b.c", "a.b", 0),
        ("a.bc", "a.b", -1),
        ("ca.b", "a.b", -1),
        ("预算5万", "5", 2),
        ("预算万", "算", 1),
        ("(x)", "(x)", 0),
        ("a(x)b", "(x)", 1),
        ("aé", "a", 0),
        ("nothing", "some", -1),
        ("", "x", -1),
    ],
)
def test_a_string_stands_free(text: str, string: str, at: int) -> None:
    """Not inside of a longer word or number; the first place where it does counts."""
    hit = Evidence([lasting(text)]).literal(string)

    assert (-1 if hit is None else hit.place.start) == at
    if hit is not None:
        assert hit.place == Place("s", None, 0, 0, at, at + len(string))
        assert (hit.verbatim, hit.persistent) == (True, True)


def test_a_short_string_of_the_tail_says_nothing() -> None:
    """Six characters are enough there; in what lasts, one is; and what lasts is looked at first."""
    view = Evidence([passing("abcde abcdef"), lasting("abcdef x")])

    assert view.literal("abcde") is None
    assert view.literal("x") is not None
    hit = view.literal("abcdef")
    assert hit is not None
    assert (hit.persistent, hit.place.segment_id) == (True, "s")
    tail = Evidence([passing("abcde abcdef")])
    found = tail.literal("abcdef")
    assert found is not None
    assert (found.place, found.persistent) == (Place(None, 9, 1, 2, 6, 12), False)
    assert tail.literal("abcde", length_min=5) is not None


def test_a_string_that_is_a_part_of_a_value_is_inside_of_it() -> None:
    """The value itself is not inside of itself, and what stands before or behind it is not either."""
    text = "See https://example.com/a/b?x=1 and example.com, tell anna@example.org"
    view = Evidence([lasting(text)])
    inside = {
        string: hit.inside
        for string in ("https://example.com/a/b?x=1", "example.org", "See", "and", "a/b", "example.com/a", "tell")
        if (hit := view.literal(string)) is not None
    }

    assert inside == {
        "https://example.com/a/b?x=1": False,
        "example.org": True,
        "See": False,
        "and": False,
        "a/b": True,
        "example.com/a": True,
        "tell": False,
    }


def test_a_value_is_found_by_its_normal_form() -> None:
    """Word for word where one of its spellings is there; else it is there written otherwise."""
    view = Evidence([passing("It is 900 USD."), lasting("It is $900.00 now.")])

    verbatim = view.atom("money", "USD 900", ["$900.00"])
    assert verbatim is not None
    assert (verbatim.verbatim, verbatim.persistent, verbatim.place) == (True, True, Place("s", None, 0, 0, 6, 13))
    passing_by = view.atom("money", "USD 900", ["nothing", "900 USD"])
    assert passing_by is not None
    assert (passing_by.verbatim, passing_by.persistent) == (True, False)
    otherwise = view.atom("money", "USD 900", ["$ 900"])
    assert otherwise is not None
    assert (otherwise.verbatim, otherwise.persistent) == (False, True)
    both = view.atom("money", "USD 900", ["900 USD", "$900.00"])
    assert both is not None
    assert (both.verbatim, both.persistent) == (True, True)


def test_a_value_of_another_class_is_found_as_a_string() -> None:
    """As a value of the view, or as a part of its text; of what is in no spelling there, nothing is."""
    view = Evidence([lasting("Version 1.2.3 is on https://example.com/a1/b2 today")])

    as_value = view.atom("host", "1.2.3", ["1.2.3"])
    assert as_value is not None
    assert (as_value.verbatim, as_value.inside) == (True, False)
    as_string = view.atom("name", "a1", ["A1", "a1"])
    assert as_string is not None
    assert as_string.inside
    assert view.atom("name", "bob", ["Bob", "bob"]) is None


def test_the_first_place_of_a_value_counts() -> None:
    """In the order of the passages, those that last first."""
    view = Evidence([lasting("$900 first", "s1"), lasting("$900 again", "s2")])

    hit = view.atom("money", "USD 900", ["$900"])
    assert hit is not None
    assert hit.place.segment_id == "s1"


def test_a_clause_is_found_word_for_word_or_with_other_blanks_and_case() -> None:
    """A sentence of the view with the same form; or a part of what lasts; in the tail whole sentences alone."""
    clause, canon = "Never call Bob.", "never call bob"
    verbatim = Evidence([lasting("So: Never call Bob. Yes.")]).clause(canon, ["other", clause])
    assert verbatim is not None
    assert (verbatim.verbatim, verbatim.persistent, verbatim.place.start) == (True, True, 4)
    short = Evidence([passing("Go. Now.")]).clause("go", ["Go."])
    assert short is not None
    assert (short.verbatim, short.persistent) == (True, False)

    sentence = Evidence([passing("Yes. NEVER  call Bob! Bye.")]).clause(canon, [clause])
    assert sentence is not None
    assert (sentence.verbatim, sentence.persistent, sentence.place) == (False, False, Place(None, 9, 1, 2, 5, 21))
    text = "We said: NEVER  call Bob and mean it."
    part = Evidence([passing("x"), lasting(text)]).clause(canon, [clause])
    assert part is not None
    assert (part.verbatim, part.persistent, part.place) == (False, True, Place("s", None, 0, 0, 0, len(text)))
    assert Evidence([passing(text)]).clause(canon, [clause]) is None
    assert Evidence([lasting("Never call anybody.")]).clause(canon, [clause]) is None
