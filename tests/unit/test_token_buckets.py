"""Token buckets: how often something may happen, by a clock that is an argument."""

import pytest

from threadmark.app.access.token_buckets import Buckets


def test_a_rested_bucket_gives_its_burst_and_then_one_by_one() -> None:
    """Ten at once, then one for each second that passed."""
    buckets = Buckets(per_s=2.0, burst=10)

    assert [buckets.take("a", 0.0) for _ in range(11)] == [0.0] * 10 + [0.5]
    assert [buckets.take("a", 1.0) for _ in range(3)] == [0.0, 0.0, 0.5]


def test_a_refused_take_costs_nothing() -> None:
    """Knocking at an empty bucket does not keep it empty."""
    buckets = Buckets(per_s=1.0, burst=1)
    buckets.take("a", 0.0)

    assert [buckets.take("a", 0.5) for _ in range(100)] == [0.5] * 100
    assert buckets.take("a", 1.0) == 0.0


def test_a_bucket_holds_no_more_than_its_burst() -> None:
    """A year of rest is worth one burst."""
    buckets = Buckets(per_s=5.0, burst=3)
    buckets.take("a", 0.0)

    assert [buckets.take("a", 3e7) == 0.0 for _ in range(4)] == [True, True, True, False]


def test_each_name_has_a_bucket_of_its_own() -> None:
    """What one spends, another keeps."""
    buckets = Buckets(per_s=1.0, burst=1)
    buckets.take("a", 0.0)

    assert buckets.take("b", 0.0) == 0.0
    assert (buckets.wait_s("a", 0.0), buckets.wait_s("b", 0.0), buckets.wait_s("c", 0.0)) == (1.0, 1.0, 0.0)


def test_a_clock_that_stands_still_or_steps_back_wins_nothing() -> None:
    """Time that did not pass brings no tokens."""
    buckets = Buckets(per_s=1.0, burst=1)
    buckets.take("a", 10.0)

    assert buckets.take("a", 5.0) == 1.0


def test_names_are_forgotten_oldest_first() -> None:
    """Memory is bounded: a flood of names forgets the one that rested longest."""
    buckets = Buckets(per_s=0.001, burst=1, count_max=2)
    for name in ("a", "b", "c"):
        buckets.take(name, 0.0)

    assert [buckets.wait_s(name, 0.0) > 0 for name in ("a", "b", "c")] == [False, True, True]


@pytest.mark.parametrize(("per_s", "burst"), [(0.0, 1), (-1.0, 1), (1.0, 0)])
def test_a_bucket_that_never_gives_is_a_mistake(per_s: float, burst: int) -> None:
    """A limit of nothing is refused where it is set, not met by every caller."""
    with pytest.raises(ValueError, match="bucket"):
        Buckets(per_s=per_s, burst=burst)
