"""The index of runs: where each run stands in it, and who began what."""

from tests.support.factories import EXECUTION, RUN, Story, human, replied, started
from threadmark.state import ExecutionId, RunId, TurnStarted
from threadmark.state.entries.lineage import Stretch
from threadmark.state.entries.run_index import Origin, RunIndex


def index_of(story: Story) -> RunIndex:
    """The index of a story."""
    index = RunIndex()
    index.see(story.entries)
    return index


def test_a_run_is_known_from_its_first_entry_and_begun_by_its_start() -> None:
    """What no run wrote belongs to none."""
    story = Story(TurnStarted(worker_id="w", attempt=1), run=4)
    story.run = None  # type: ignore[assignment]
    story.tell(replied())
    story.run = 5
    story.tell(started(human()), replied(ordinal=2))
    index = index_of(story)

    assert [index.first_seq(run) for run in (4, 5, 6)] == [1, 3, None]
    assert [index.has_started(run) for run in (4, 5, 6)] == [False, True, False]
    assert [index.origin_of(run) for run in (4, 5, 6, None)] == [None, Origin(RUN, "chat"), None, None]
    assert (index.has_begun(EXECUTION), index.has_begun(ExecutionId("other"))) == (True, False)


def test_an_execution_is_whole_with_all_its_runs() -> None:
    """One that another branch has ended, or that a fork left in its middle, is not; one that nobody began is."""
    story = Story(started(human()), replied())
    story.run = 2
    story.tell(started(run_id="run-2", source="resume"), replied(ordinal=2))
    index = index_of(story)

    assert index.is_whole(EXECUTION, (Stretch(0, 4), Stretch(1)))
    assert not index.is_whole(EXECUTION, (Stretch(0, 3), Stretch(1)))
    assert not index.is_whole(EXECUTION, (Stretch(0, 1), Stretch(1)))
    assert index.is_whole(ExecutionId("other"), ())


def test_a_run_that_came_back_to_a_branch_is_seen_on_all_of_them() -> None:
    """Each branch that it wrote on, up to its last entry there."""
    story = Story(started(human()))
    for branch in (1, 0, 2):
        story.branch = branch
        story.tell(replied())
    index = index_of(story)

    assert index.first_seq(1) == 1
    assert index.is_whole(EXECUTION, (Stretch(0, 3), Stretch(1, 2), Stretch(2, 4)))
    for lost in ((Stretch(0, 2), Stretch(1), Stretch(2)), (Stretch(0), Stretch(2)), (Stretch(0), Stretch(1))):
        assert not index.is_whole(EXECUTION, lost), lost


def test_a_copy_does_not_see_what_comes_later() -> None:
    """Neither does the index see what its copy does."""
    index = index_of(Story(started(human())))
    twin = index.copy()
    assert twin == index
    later = Story(started(run_id="run-9", execution_id="execution-9"), run=9)
    twin.see(later.entries)

    assert (index.has_started(9), index.first_seq(9), index.has_begun(ExecutionId("execution-9"))) == (
        False,
        None,
        False,
    )
    assert (twin.has_started(1), twin.origin_of(9)) == (True, Origin(RunId("run-9"), "chat"))
