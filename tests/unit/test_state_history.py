"""History: the positions of a thread over all its branches, and what was said at each of them."""

from tests.support.factories import RUN, Story, asked, human, replied, returned, started
from threadmark.state import (
    Failure,
    Leave,
    RolledBack,
    RunId,
    RunSettled,
    StateUpdated,
    WaitOpened,
    read_history,
    transcripts,
)
from threadmark.state.entries.ids import StepKey
from threadmark.state.entries.run_index import Origin

NO_LEAVES: dict[int, Leave] = {}


def forked() -> tuple[Story, dict[int, Leave]]:
    """A run of one reply, and a second run that left from its input and was answered otherwise."""
    story = Story.begun(replied(text="first"))
    story.run, story.branch = 2, 1
    story.tell(started(run_id="run-2", execution_id="execution-2", source="fork", from_seq=1))
    story.next_turn(replied(text="second"))
    return story, {1: Leave(parent=0, fork_seq=1)}


def test_a_position_follows_the_input_and_each_node() -> None:
    """One after the input, one after the reply, one after the last of its results."""
    history = read_history(Story.begun(replied(asked()), returned("tool-1-0"), replied(ordinal=2)).entries, NO_LEAVES)

    assert [(each.source, each.step, each.next) for each in history.positions.values()] == [
        ("input", -1, "model"),
        ("loop", 0, "tools"),
        ("loop", 1, "model"),
        ("loop", 2, None),
    ]


def test_both_branches_are_listed_and_the_tree_is_in_the_parents() -> None:
    """A fork leaves the old branch in the history."""
    story, leaves = forked()
    history = read_history(story.entries, leaves)

    parents = {seq: each.parent.seq if each.parent else None for seq, each in history.positions.items()}
    assert parents == {1: None, 3: 1, 4: 1, 6: 4}
    assert [each.branch for each in history.positions.values()] == [0, 0, 1, 1]


def test_each_branch_has_its_own_transcript() -> None:
    """What was said on one branch does not appear on the other."""
    story, leaves = forked()
    said = transcripts(story.entries, leaves, {1, 3, 6})

    assert {seq: [message.content for message in messages] for seq, messages in said.items()} == {
        1: ["hello"],
        3: ["hello", "first"],
        6: ["hello", "second"],
    }


def test_a_run_that_was_rolled_back_has_no_positions() -> None:
    """Its entries stay in the journal; nobody looks at them or forks from them."""
    story = Story.begun(replied())
    story.run = 2
    story.tell(started(human("no", "human-2"), run_id="run-2", execution_id="execution-2"))
    story.next_turn(replied(text="wrong"))
    story.branch = 1
    story.tell(RolledBack(run_id=RunId("run-2")))

    history = read_history(story.entries, {1: Leave(parent=0, fork_seq=3)})

    assert list(history.positions) == [1, 3]
    assert {history.origin_of(each) for each in history.positions.values()} == {history.origins[1]}


def test_a_question_belongs_to_the_position_it_was_asked_at() -> None:
    """So a checkpoint shows the questions of its own time."""
    asks = WaitOpened(
        wait_id="w", step_key=StepKey("tool-1-0"), kind="approval", tool="look", arguments={}, shown_digest="d"
    )

    assert read_history(Story.begun(replied(asked()), asks).entries, NO_LEAVES).asked == {"w": 3}


def test_branches_of_branches_begin_where_they_left() -> None:
    """A fork of a fork sees its parent up to there, and its grandparent up to where the parent left."""
    story, leaves = forked()
    story.run, story.branch = 3, 2
    story.tell(started(human("third", "human-3"), run_id="run-3", execution_id="execution-3"))

    said = transcripts(story.entries, {**leaves, 2: Leave(parent=1, fork_seq=4)}, {7})

    assert [message.content for message in said[7]] == ["hello", "third"]


def test_a_branch_says_why_its_last_run_failed() -> None:
    """At its last position; a run that did not fail, and one that went well after it, say nothing."""
    failure = Failure("Broken", "it broke")
    failed = RunSettled(run_id=RunId("run-1"), status="error", failure=failure)
    story = Story.begun(replied(), failed)
    assert read_history(story.entries, NO_LEAVES).failures == {3: failure}
    story.run, story.branch = 2, 1
    story.tell(started(human("again", "human-2"), run_id="run-2", execution_id="execution-2"))
    leaves = {1: Leave(parent=0, fork_seq=4)}
    assert read_history(story.entries, leaves).failures == {3: failure}

    assert read_history(Story(failed).entries, NO_LEAVES).failures == {}
    assert read_history(Story.begun(failed).entries, NO_LEAVES).failures == {1: failure}


def test_a_position_says_which_run_made_it() -> None:
    """An update from outside has none, and a run of which only a part was copied is unknown."""
    story = Story.begun(replied())
    story.run = None  # type: ignore[assignment]
    story.tell(StateUpdated(messages=(human("note", "human-2"),)))
    story.run = 5
    story.tell(replied(ordinal=2))
    history = read_history(story.entries, NO_LEAVES)

    origins = {seq: history.origin_of(each) for seq, each in history.positions.items()}
    assert origins == {1: Origin(RUN, "chat"), 3: Origin(RUN, "chat"), 4: None, 5: None}


def test_a_run_that_is_rolled_back_unbegun_is_known_by_the_entry_itself() -> None:
    """Its own start was taken out of a copy; what it had written is not shown."""
    story = Story.begun()
    story.run = 2
    story.tell(replied(text="wrong"), RolledBack(run_id=RunId("run-2")))

    assert list(read_history(story.entries, NO_LEAVES).positions) == [1]


def test_transcripts_are_of_positions_alone() -> None:
    """Between two positions nothing was said; a seq that is none has no transcript."""
    story, leaves = forked()

    assert set(transcripts(story.entries, leaves, range(10))) == {1, 3, 4, 6}


def test_several_branches_may_leave_at_one_place() -> None:
    """Each begins with what was said until there, and what is said on one does not appear on the others."""
    story = Story.begun(replied(text="first"))
    leaves = {branch: Leave(parent=0, fork_seq=seq) for branch, seq in ((1, 3), (2, 1), (3, 1), (4, 0))}
    for branch in leaves:
        story.run, story.branch = 10 + branch, branch
        text = f"on {branch}"
        story.tell(started(human(text, text), run_id=f"run-{branch}", execution_id=f"execution-{branch}"))

    said = transcripts(story.entries, leaves, range(4, 8))
    assert {seq: [message.content for message in messages] for seq, messages in said.items()} == {
        4: ["hello", "first", "on 1"],
        5: ["hello", "on 2"],
        6: ["hello", "on 3"],
        7: ["on 4"],
    }
