"""When a lock that fell means a death: alone, and not taken again within a grace."""

from threadmark.state.runs.fallen_locks import GRACE_S, TOGETHER_S, FallenLocks


def test_a_lock_that_fell_alone_is_a_death_after_the_grace() -> None:
    """The grace is at most half a second, and somebody has to look again when it is over."""
    fallen = FallenLocks()
    assert fallen.judge(["a"], 10.0) == []
    assert fallen.has_some

    assert fallen.judge(["a"], 10.0 + GRACE_S - 0.01) == []
    assert fallen.judge(["a"], 10.0 + GRACE_S + 0.01) == ["a"]
    assert GRACE_S <= 0.5


def test_a_lock_that_was_taken_again_begins_anew() -> None:
    """It fell for a moment; the next time it has its whole grace."""
    fallen = FallenLocks()
    fallen.judge(["a"], 10.0)
    fallen.judge([], 10.1)

    assert fallen.judge(["a"], 10.5) == []
    assert fallen.judge(["a"], 10.5 + GRACE_S + 0.01) == ["a"]


def test_the_grace_counts_from_when_the_database_answers() -> None:
    """While it does not, nobody can take a lock."""
    fallen = FallenLocks()
    fallen.judge(["a"], 10.0)
    fallen.unanswered()

    assert fallen.judge(["a"], 13.0) == []
    assert fallen.judge(["a"], 13.0 + GRACE_S + 0.01) == ["a"]


def test_locks_that_fall_together_are_a_cut() -> None:
    """Their leases decide, also when some come back; one that falls alone later is a death."""
    fallen = FallenLocks()
    fallen.judge(["a", "b"], 10.0)
    assert fallen.judge(["a", "b"], 20.0) == []
    assert not fallen.has_some
    assert fallen.judge(["b"], 21.0) == []

    fallen.judge(["b", "c"], 30.0)
    assert fallen.judge(["b", "c"], 30.0 + GRACE_S + 0.01) == ["c"]


def test_a_lock_that_falls_with_the_observers_own_is_in_the_cut() -> None:
    """It sees its own end a little before or after that of the other."""
    for own_fell_at_s in (10.1 - TOGETHER_S, 9.9 + TOGETHER_S):
        fallen = FallenLocks()
        fallen.judge(["a"], 10.0)
        assert fallen.judge(["a"], 20.0, own_fell_at_s) == []
