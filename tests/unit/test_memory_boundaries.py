"""The edges of memory's rules: intervals that touch or begin together, and the scales and windows of ranking."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.support.memory_house import NOW
from threadmark.memory import CURRENT
from threadmark.memory.model.instants import FAR_US, to_us
from threadmark.memory.model.timeline import Placement, Remainder, Version, cover, held_at, place
from threadmark.memory.recall.ranking import Candidate, QueryFeatures, rank


def version(name: str, begin: int, end: int = FAR_US) -> Version:
    """A version that is believed since instant 50."""
    return Version(assertion_id=name, valid_from=begin, valid_to=end, known_from=50)


def test_a_statement_of_the_same_instant_takes_the_place_of_the_one_before() -> None:
    """Nothing is left of the earlier one: no remainder of no length, and no end at its own beginning."""
    assert place([version("a", 10)], 10, None) == Placement(
        valid_from=10, valid_to=FAR_US, closed=("a",), remainders=()
    )


def test_a_statement_over_exactly_the_same_interval_leaves_nothing() -> None:
    """Neither before it nor after it."""
    held = [version("a", 0, 10), version("b", 10, 20), version("c", 20)]

    assert place(held, 10, 20) == Placement(valid_from=10, valid_to=20, closed=("b",), remainders=())


def test_intervals_that_touch_do_not_close_each_other() -> None:
    """The end of one is the beginning of the next."""
    held = [version("a", 0, 10), version("c", 20)]

    assert place(held, 10, 20) == Placement(valid_from=10, valid_to=20, closed=(), remainders=())
    assert place(held, 10, None) == Placement(valid_from=10, valid_to=20, closed=(), remainders=())


def test_intervals_that_overlap_by_one_instant_do() -> None:
    """What is left of them is believed anew, to the instant."""
    held = [version("a", 0, 11), version("c", 19)]

    placed = place(held, 10, 20)

    assert placed.closed == ("a", "c")
    assert placed.remainders == (
        Remainder(of="a", valid_from=0, valid_to=10),
        Remainder(of="c", valid_from=20, valid_to=FAR_US),
    )


def test_the_next_change_ends_a_statement_without_an_end() -> None:
    """The first of the later ones, whatever their order."""
    held = [version("c", 30), version("b", 20, 30), version("a", 0, 20)]

    assert place(held, 5, None).valid_to == 20
    assert place(held, 20, None).valid_to == 30


@pytest.mark.parametrize(("instant", "name"), [(9, None), (10, "a"), (19, "a"), (20, "b"), (24, "b"), (25, None)])
def test_an_instant_has_the_version_whose_interval_holds_it(instant: int, name: str | None) -> None:
    """The beginning belongs to an interval, the end does not."""
    held = [version("a", 10, 20), version("b", 20, 25)]

    found = cover(held, instant)

    assert (found and found.assertion_id) == name


@pytest.mark.parametrize(
    ("valid_at", "known_at", "holds"),
    [(10, 50, True), (9, 50, False), (19, 59, True), (20, 59, False), (19, 60, False), (10, 49, False)],
)
def test_a_version_is_held_inside_both_intervals(valid_at: int, known_at: int, holds: bool) -> None:
    """On the axis of truth and on that of belief."""
    assert held_at(replace(version("a", 10, 20), known_to=60), valid_at, known_at) is holds


RECIPE = replace(CURRENT, text=1.0, context=0.0, dense=1.0, neighbour=0.5, speaker=0.0, date=0.5, session=0.0)


def candidate(number: int, *, previous: int | None = None, observed_at: int = to_us(NOW), **scores: float) -> Candidate:
    """A turn without a conversation, with the scores of its arms."""
    before = None if previous is None else f"id-{previous}"
    return Candidate(f"id-{number}", number, observed_at, None, None, before, False, scores)


def parts(candidates: list[Candidate], signal: str, features: QueryFeatures | None = None) -> dict[int, float]:
    """What the signal gave to each candidate, by number; those without it are left out."""
    ranked = rank(candidates, features or QueryFeatures(), RECIPE, 10)
    return {int(each.assertion_id[3:]): each.because[signal] for each in ranked if signal in each.because}


@pytest.mark.parametrize(("before", "after"), [(8.0, 2.0), (2.0, 8.0)])
@pytest.mark.parametrize("backward", [False, True])
def test_a_turn_borrows_from_the_better_of_its_neighbours(before: float, after: float, backward: bool) -> None:
    """Half of 8/8, whichever side it is on and in whichever order they come; the two ends have one neighbour each."""
    turns = [
        candidate(1, text=before),
        candidate(2, previous=1, text=4.0),
        candidate(3, previous=2, text=after),
    ]

    borrowed = parts(turns[::-1] if backward else turns, "neighbours")

    assert borrowed == {1: pytest.approx(0.25), 2: pytest.approx(0.5), 3: pytest.approx(0.25)}


def test_similarities_are_scaled_from_the_least_to_the_greatest() -> None:
    """They have no zero of their own, so the least is 0 and the greatest 1; a missing one is 0."""
    turns = [candidate(1, dense=0.2), candidate(2, dense=0.3), candidate(3, dense=0.6), candidate(4)]

    assert parts(turns, "dense") == {2: pytest.approx(0.25), 3: pytest.approx(1.0)}


def test_equal_similarities_tell_nothing() -> None:
    """No scale has no length."""
    assert parts([candidate(1, dense=0.4), candidate(2, dense=0.4)], "dense") == {}


def test_lexical_scores_are_scaled_from_zero() -> None:
    """The least of them is not nothing: it shares a term with the question."""
    assert parts([candidate(1, text=2.0), candidate(2, text=8.0)], "text") == {1: 0.25, 2: 1.0}


def test_the_window_of_dates_is_half_open() -> None:
    """Its first instant is lifted, the one before it and its last are not."""
    first, last = to_us(NOW), to_us(NOW + timedelta(days=1))
    instants = {1: first - 1, 2: first, 3: last - 1, 4: last}
    turns = [candidate(number, observed_at=at, text=float(number)) for number, at in instants.items()]
    features = QueryFeatures(window=(NOW, NOW + timedelta(days=1)))

    assert sorted(parts(turns, "date", features)) == [2, 3]
