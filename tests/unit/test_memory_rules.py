"""The pure rules of memory: words, dates, time, trust, ranking, budgets, values."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.memory_house import NOW, question
from threadmark.memory import CURRENT, Refused, Trust
from threadmark.memory.extraction import ruled
from threadmark.memory.items.item_filter import matches
from threadmark.memory.model.admission import Hold, hold_for, may_supersede
from threadmark.memory.model.instants import FAR_US, from_us, parsed, to_us
from threadmark.memory.model.timeline import Remainder, Version, cover, held_at, place
from threadmark.memory.model.values import check_json, check_text
from threadmark.memory.recall.query_features import query_features
from threadmark.memory.recall.ranking import Candidate, QueryFeatures, rank
from threadmark.memory.recall.retrieval import estimated_tokens, fitting
from threadmark.memory.recall.unindexed import scores
from threadmark.memory.text.bm25 import TEXT_LENGTH, dimension, idf, weights
from threadmark.memory.text.dates import asks_for_time, has_time_words, window
from threadmark.memory.text.terms import folded, terms


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I bought two kayaks", ["buy", "two", "kayak"]),
        ("Café CAFÉ cafe\u0301", ["cafe", "cafe", "cafe"]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
        ("ＦＵＬＬ width", ["full", "width"]),
        ("don't", ["don"]),
        ("книги книга", ["книг", "книг"]),
        ("v2.1 A_b", ["v2", "1", "a_b"]),
        ("the of and", []),
        ("8 May 2023", ["8", "may", "2023"]),
    ],
)
def test_terms(text: str, found: list[str]) -> None:
    """One spelling for what people type differently."""
    assert terms(text) == found


def test_names_are_folded_for_comparison() -> None:
    """Case, width, accents and spacing; other letters stay themselves."""
    assert folded("  Ｊosé   NÚÑEZ ") == "jose nunez"
    assert folded("Ω") != folded("Ο")


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("on 8 May 2023", "2023-05-06", "2023-05-30"),
        ("on May 8th, 2023?", "2023-05-06", "2023-05-30"),
        ("in May 2023", "2023-04-29", "2023-06-22"),
        ("2023-05-08", "2023-05-06", "2023-05-30"),
        ("2023年5月8日", "2023-05-06", "2023-05-30"),
        ("in 2023", "2022-12-30", "2024-01-22"),
        ("yesterday", "2026-05-02", "2026-05-05"),
    ],
)
def test_windows(text: str, first: str, last: str) -> None:
    """The span of time in which people would have spoken of a date."""
    found = window(f"What happened {text}", NOW)

    assert found is not None
    assert (found[0].date().isoformat(), found[1].date().isoformat()) == (first, last)


@pytest.mark.parametrize(
    "text", ["", "31 February 2023", "the 45th of May 2023", "0000-00-00", "in 0000", "may I?", "9999-12-31"]
)
def test_what_is_no_date_opens_no_window(text: str) -> None:
    """And breaks nothing."""
    assert window(text, NOW) is None


def test_questions_about_time() -> None:
    """They are distinguished from others, and texts that say when from those that do not."""
    assert asks_for_time("When did she leave?")
    assert asks_for_time("What year was it?")
    assert not asks_for_time("What did she buy when she left?")
    assert has_time_words("I left last week")
    assert not has_time_words("I left")


def version(name: str, begin: int, end: int = FAR_US) -> Version:
    """A version believed from 1 on."""
    return Version(assertion_id=name, valid_from=begin, valid_to=end, known_from=1)


def test_a_later_statement_takes_what_comes_after_it() -> None:
    """The older stays true before it."""
    placed = place([version("a", 10)], 20, None)

    assert (placed.valid_from, placed.valid_to, placed.closed) == (20, FAR_US, ("a",))
    assert placed.remainders == (Remainder(of="a", valid_from=10, valid_to=20),)


def test_an_earlier_statement_ends_where_the_next_begins() -> None:
    """It closes nobody."""
    placed = place([version("a", 10)], 5, None)

    assert (placed.valid_to, placed.closed, placed.remainders) == (10, (), ())


def test_a_statement_with_an_end_takes_its_interval_from_everybody() -> None:
    """What it covers is closed, and what sticks out on either side is believed anew."""
    placed = place([version("a", 0, 10), version("b", 10, 20), version("c", 20)], 5, 25)

    assert placed.closed == ("a", "b", "c")
    assert placed.remainders == (
        Remainder(of="a", valid_from=0, valid_to=5),
        Remainder(of="c", valid_from=25, valid_to=FAR_US),
    )


def test_intervals_are_half_open_on_both_axes() -> None:
    """The first instant belongs, the last one does not."""
    one = Version(assertion_id="a", valid_from=10, valid_to=20, known_from=3, known_to=5)

    assert [held_at(one, valid, 3) for valid in (9, 10, 19, 20)] == [False, True, True, False]
    assert [held_at(one, 10, known) for known in (2, 3, 4, 5)] == [False, True, True, False]
    assert cover([one], 20) is None


def test_who_may_overrule_whom() -> None:
    """The web and tools only each other; an agent not an operator; people everybody."""
    over = {new: {old for old in Trust if may_supersede(new, old)} for new in Trust}

    assert over[Trust.OPERATOR] == over[Trust.USER] == set(Trust)
    assert over[Trust.AGENT] == set(Trust) - {Trust.OPERATOR}
    assert over[Trust.TOOL] == over[Trust.WEB] == {Trust.TOOL, Trust.WEB}
    assert hold_for(Trust.WEB, ("a",), [Trust.USER], source_held=False) is Hold.CONFLICT
    assert hold_for(Trust.WEB, (), [], source_held=False) is Hold.TENANT_WIDE
    assert hold_for(Trust.USER, (), [], source_held=True) is Hold.SOURCE
    assert hold_for(Trust.USER, (), [Trust.WEB], source_held=False) is Hold.NONE


def candidate(number: int, previous: int | None = None, speaker: str | None = None, **scores: float) -> Candidate:
    """A candidate of one conversation."""
    before = None if previous is None else f"id-{previous}"
    return Candidate(f"id-{number}", number, to_us(NOW), speaker, "talk", before, False, scores)


def test_scores_are_fused_not_ranks() -> None:
    """A clear winner of one arm beats a narrow winner of another."""
    talk = [candidate(1, text=10.0, dense=0.50), candidate(2, text=1.0, dense=0.51), candidate(3, dense=0.1)]

    ranked = rank(talk, QueryFeatures(), CURRENT, 10)

    assert [each.assertion_id for each in ranked] == ["id-1", "id-2", "id-3"]
    assert all(sum(each.because.values()) == pytest.approx(each.score) for each in ranked)


def test_a_turn_borrows_from_its_neighbours() -> None:
    """The answer to a question that matched comes up with it; weights of nothing lift nothing."""
    talk = [candidate(1, text=5.0), candidate(2, previous=1), candidate(3, previous=2)]

    ranked = {each.assertion_id: each.because for each in rank(talk, QueryFeatures(), CURRENT, 10)}

    assert "neighbours" in ranked["id-2"]
    assert "neighbours" not in ranked["id-3"]
    without = rank(talk, QueryFeatures(), replace(CURRENT, neighbour=0.0), 10)
    assert all("neighbours" not in each.because for each in without)


def test_the_one_speaker_who_is_named_is_lifted() -> None:
    """By name or first name, in a possessive too; two names lift nobody."""
    people = ["ada king", "bob"]
    talk = [candidate(1, speaker="ada king", text=1.0), candidate(2, speaker="bob", text=1.0), candidate(3)]

    def lifted(text: str) -> set[str]:
        found = query_features(question(text), people)
        return {each.assertion_id for each in rank(talk, found, CURRENT, 10) if "speaker" in each.because}

    assert lifted("What is Ada's job?") == {"id-1"}
    assert lifted("What did ada king and Bob say?") == set()
    assert lifted("Who is adamant?") == set()


def test_nothing_ranks_as_nothing() -> None:
    """No candidates, no answers; equal ones come newest first."""
    assert rank([], QueryFeatures(), CURRENT, 5) == []
    assert [each.assertion_id for each in rank([candidate(1), candidate(2)], QueryFeatures(), CURRENT, 5)] == [
        "id-2",
        "id-1",
    ]


def test_the_tail_is_scored_on_the_scale_of_the_index() -> None:
    """An unindexed text equal to an indexed one has its score."""
    words = (["red", "kayak"], ["red", "kayak"])

    found = scores(["kayak"], {9: words, 8: (["tax"], ["tax"])}, {1: words}, {"text": {1: 7.0}, "context": {1: 3.0}})

    assert found == {"text": {9: pytest.approx(7.0)}, "context": {9: pytest.approx(3.0)}}


def test_rare_words_weigh_more_and_long_texts_less() -> None:
    """As BM25 has it."""
    assert idf(100, 1) > idf(100, 50) > 0
    short, long = weights(["kayak"], TEXT_LENGTH), weights(["kayak", *(f"w{at}" for at in range(50))], TEXT_LENGTH)
    assert short[dimension("kayak")] > long[dimension("kayak")]


def test_a_budget_takes_what_fits_best_first() -> None:
    """A long text makes room for shorter ones."""
    assert fitting(["aaaa", "a", "aa"], 3, len) == [1, 2]
    assert fitting(["a"], None, len) == [0]
    assert estimated_tokens("x" * 40) == 11


def test_rules_of_a_turn() -> None:
    """Attributes with JSON or plain values, remembered texts, and nothing else."""
    lines = ["user.city = New York", "remember: call Ann", "user.age=41", "a = b", "http://x.y?z=1", "1.5 = x"]
    lines.append("remember: pet.name = Rex")

    found = [(each.get("subject"), each.get("attribute"), each.get("value")) for each in ruled("\n".join(lines))]

    assert found == [("user", "city", "New York"), (None, None, None), ("user", "age", 41), ("pet", "name", "Rex")]


def test_instants_are_exact() -> None:
    """To the microsecond, whatever the offset; naive ones, infinity and the ends of the calendar are refused."""
    at = datetime(2026, 3, 29, 0, 30, 0, 1, tzinfo=UTC)
    assert from_us(to_us(at)) == at
    assert parsed("2026-03-29T01:30:00.000001+01:00") == at
    assert to_us(at + timedelta(microseconds=1)) - to_us(at) == 1
    for bad in ("2026-03-29T01:30:00", "infinity", "", "0001-01-01T00:00:00Z", "9999-12-31T00:00:00Z", "soon"):
        with pytest.raises(Refused):
            parsed(bad)


def test_values_come_back_or_are_refused() -> None:
    """With the place of what is wrong."""
    assert check_json({"a": [1, 2.5, None, True, "x\0"]}, "value")
    places: dict[str, object] = {"value": float("inf"), "value.a": {"a": {1: 2}}, "value[1]": [0, 2**53]}
    for path, odd in places.items():
        with pytest.raises(Refused) as refused:
            check_json(odd, "value")
        assert refused.value.path == path
    for bad in ("\ud800", "x" * 32_769, "\u200b \n", None):
        with pytest.raises(Refused):
            check_text(bad, "text")


def test_documents_are_compared_as_json_compares() -> None:
    """A truth value is no number, and what cannot be compared does not match."""
    document = {"n": 1, "b": True, "t": "m"}

    assert matches(document, {"n": 1, "t": {"$gt": "a", "$lt": "z"}})
    assert not matches(document, {"b": 1})
    assert not matches(document, {"t": {"$gt": 1}})
    assert not matches(document, {"missing": None})
    assert matches(document, {"missing": {"$ne": 1}})
