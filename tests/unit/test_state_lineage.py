"""Branches: a fork sees what stood before it, and the branch that was left loses nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadmark.state import ROOT, Leave, Recorded, Stretch, TurnStarted, fork_lineage, lineage_of, visible

ENTRY = TurnStarted(worker_id="w", attempt=1)


def journal(*branches: int) -> list[Recorded]:
    """Entries at seq 1, 2, …, each on the branch given."""
    return [Recorded(seq, branch, 1, 1, seq, "turn_started", ENTRY) for seq, branch in enumerate(branches, start=1)]


def test_a_thread_without_forks_sees_everything() -> None:
    """The root sees its own entries up to the tip, and none of another branch."""
    assert [each.seq for each in visible(journal(0, 0, 1, 0), ROOT)] == [1, 2, 4]


def test_a_fork_sees_its_parent_up_to_where_it_left() -> None:
    """Entries of the parent after the fork, written before or after it, are not seen."""
    leaves = {1: Leave(parent=0, fork_seq=2)}

    seen = visible(journal(0, 0, 0, 1, 0, 1), lineage_of(leaves, 1))

    assert [each.seq for each in seen] == [1, 2, 4, 6]


def test_a_fork_from_before_everything_sees_nothing_of_its_parent() -> None:
    """`fork_seq` 0 is the place before the first entry: a first run that was rolled back leaves an empty thread."""
    leaves = {1: Leave(parent=0, fork_seq=0)}

    assert [each.seq for each in visible(journal(0, 0, 1), lineage_of(leaves, 1))] == [3]


def test_forks_of_forks_see_a_part_of_each_ancestor() -> None:
    """Each ancestor is seen up to the place at which the way to the tip left it."""
    leaves = {1: Leave(0, 2), 2: Leave(1, 5), 3: Leave(0, 1)}
    entries = journal(0, 0, 0, 1, 1, 1, 2, 3)

    assert [each.seq for each in visible(entries, lineage_of(leaves, 2))] == [1, 2, 4, 5, 7]
    assert [each.seq for each in visible(entries, lineage_of(leaves, 3))] == [1, 8]


def test_a_new_branch_has_the_lineage_that_its_row_gives_later() -> None:
    """What a fork is given when it is made equals what is computed from the stored leaves."""
    leaves = {1: Leave(0, 2), 2: Leave(1, 5)}

    lineage = fork_lineage(leaves, Stretch(2, 7), 3)

    assert lineage == lineage_of({**leaves, 3: Leave(2, 7)}, 3)
    assert lineage == (Stretch(0, 2), Stretch(1, 5), Stretch(2, 7), Stretch(3))


def test_a_branch_without_a_row_is_no_lineage() -> None:
    """A lineage is never guessed."""
    with pytest.raises(KeyError):
        lineage_of({}, 1)


@given(st.data())
def test_whatever_is_forked_where_it_sees_exactly_the_past_of_that_place(data: st.DataObject) -> None:
    """Branches are made at random places; each sees what its place saw, and then its own entries (a model: lists)."""
    leaves: dict[int, Leave] = {}
    entries: list[Recorded] = []
    sees: dict[int, list[int]] = {0: []}
    for _ in range(data.draw(st.integers(1, 25), label="actions")):
        branch = data.draw(st.sampled_from(sorted(sees)), label="branch")
        forks = data.draw(st.booleans(), label="forks")
        if forks and entries:
            at = data.draw(st.sampled_from(entries), label="at")
            new = len(sees)
            leaves[new] = Leave(at.branch, at.seq)
            past = sees[at.branch]
            sees[new] = past[: past.index(at.seq) + 1]
            assert fork_lineage(leaves, Stretch(at.branch, at.seq), new) == lineage_of(leaves, new)
        else:
            seq = len(entries) + 1
            entries.append(Recorded(seq, branch, 1, 1, seq, "turn_started", ENTRY))
            sees[branch].append(seq)

    for branch, seqs in sees.items():
        assert [each.seq for each in visible(entries, lineage_of(leaves, branch))] == seqs
