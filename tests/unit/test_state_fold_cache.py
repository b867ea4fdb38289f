"""The folds that a process keeps, by bytes and by time, and the index of runs that goes with each."""

from tests.support.factories import EXECUTION, Story, human, replied, started
from threadmark.state.entries.lineage import Stretch
from threadmark.state.entries.run_index import RunIndex
from threadmark.state.fold.fold_cache import FoldCache, Folded


def folded(byte_count: int) -> Folded:
    """A fold of a journal of so many bytes."""
    story = Story.begun()
    return Folded(
        head_seq=2,
        head_digest=b"",
        lineage=(Stretch(0, None),),
        erasures=0,
        state=story.state,
        run_index=RunIndex(),
        byte_count=byte_count,
        around={},
    )


def test_folds_are_kept_up_to_their_bytes() -> None:
    """To the byte; the one that was asked for longest ago goes first, and one that is too large is not kept."""
    cache = FoldCache(10)

    cache.keep(1, folded(4))
    cache.keep(2, folded(6))
    assert (cache.numbers, cache.byte_count) == ([1, 2], 10)
    cache.keep(3, folded(1))
    assert (cache.numbers, cache.byte_count) == ([2, 3], 7)
    cache.keep(2, folded(2))
    assert (cache.numbers, cache.byte_count) == ([3, 2], 3)
    cache.keep(3, folded(11))
    assert (cache.numbers, cache.byte_count) == ([2], 2)


def test_folds_that_nobody_asked_for_are_let_go() -> None:
    """After more than their time; at just that age they stay."""
    now = [100.0]
    cache = FoldCache(10, kept_s=5, clock=lambda: now[0])
    cache.keep(1, folded(4))
    now[0] = 101.0
    cache.keep(2, folded(4))

    now[0] = 105.0
    cache.forget()
    assert cache.numbers == [1, 2]
    now[0] = 105.5
    cache.forget()
    assert (cache.numbers, cache.byte_count) == ([2], 4)


def test_an_execution_is_whole_where_every_entry_of_its_runs_is_seen() -> None:
    """On the branches that its runs wrote, each up to its last entry there."""
    story = Story(started(human()), replied())
    story.branch = 1
    story.tell(replied(ordinal=2))
    index = RunIndex()
    index.see(story.entries)

    assert index.first_seq(1) == 1
    assert index.is_whole(EXECUTION, (Stretch(0, 2), Stretch(1, None)))
    assert index.is_whole(EXECUTION, (Stretch(0, None), Stretch(1, 3)))
    assert not index.is_whole(EXECUTION, (Stretch(0, 1), Stretch(1, None)))
    assert not index.is_whole(EXECUTION, (Stretch(0, 2), Stretch(1, 2)))
    assert not index.is_whole(EXECUTION, (Stretch(0, 2),))
    assert not index.is_whole(EXECUTION, (Stretch(1, None),))
