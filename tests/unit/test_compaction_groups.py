"""Groups: a call and its results are never split, and no history, however bad, makes an orphan."""

import pytest

from tests.support.compaction_threads import ai, fuzzed_history, human, message, tool
from tests.support.provider_pairs import orphans_anthropic, orphans_chat, orphans_gemini, orphans_responses
from threadmark.compaction.input.groups import groups_of, pair_results
from threadmark.compaction.input.source import Role, SourceEntry
from threadmark.compaction.model.plan import Plan, Situation
from threadmark.compaction.model.policy import Policy
from threadmark.compaction.run.next_view import next_view
from threadmark.compaction.run.planning import plan_compaction
from threadmark.compaction.view import Live, PartRole, Segment, View, first_view, render

CHECKS = (orphans_chat, orphans_responses, orphans_gemini)
SOME, MANY = 1_500, 100_000


def assert_no_orphans(seeds: range) -> None:
    """Every fuzzed history, whole and compacted to the bone, satisfies every provider's rule."""
    policy = Policy(keep_last_turns=1, min_gain=0.0, keep_first_request=False)
    for seed in seeds:
        entries = fuzzed_history(seed)
        view = first_view("v0")
        check(view, entries, {}, seed)
        plan = plan_compaction(Situation(view=view, entries=entries, segments={}), policy)
        if isinstance(plan, Plan):
            segment = Segment(segment_id="s1", compaction_id="c1", text="gone", covered=plan.covered, tokens=3)
            after = next_view(view, "v1", "c1", plan, segment, entries)
            check(after, entries, {"s1": segment}, seed)


def check(view: View, entries: list[SourceEntry], segments: dict[str, Segment], seed: int) -> None:
    """No orphan, for any provider."""
    parts = render(view, entries, segments).parts
    for orphans in CHECKS:
        assert orphans(parts) == [], (seed, orphans.__name__)
    if not any(part.role is Role.AI and not part.calls for part in parts):
        assert orphans_anthropic(parts) == [], seed


def test_fuzzed_histories_have_no_orphans() -> None:
    """No result without its call, no call without its result, in any provider's form (G2)."""
    assert_no_orphans(range(SOME))


@pytest.mark.soak
def test_many_fuzzed_histories_have_no_orphans() -> None:
    """The same for 100,000 histories."""
    assert_no_orphans(range(MANY))


@pytest.mark.parametrize("cut", range(1, 11))
def test_every_cut_leaves_a_batch_whole(cut: int) -> None:
    """Wherever a view is cut, four calls and their four results are on one side, and nothing is lost (C65)."""
    entries = [
        human(1, "look it up"),
        ai(2, "", "c1", "c2", "c3", "c4"),
        tool(3, "r2", "c2"),
        tool(4, "r1", "c1"),
        tool(5, "r4", "c4"),
        tool(6, "r3", "c3"),
        ai(7, "done"),
        human(8, "thanks"),
        ai(9, "", "c5"),
        tool(10, "r5", "c5"),
        ai(11, "bye"),
    ]
    start = max(group.start for group in groups_of(entries) if group.start < cut)
    view = View(view_id="v", items=(Live(entries[start].seq),))
    parts = render(view, entries, {}).parts

    assert orphans_chat(parts) == []
    assert [part.seq for part in parts if part.kind is PartRole.MESSAGE and part.role is not Role.TOOL] == [
        entry.seq for entry in entries[start:] if entry.role is not Role.TOOL
    ]
    kept = {part.seq for part in parts}
    assert kept | {entry.seq for entry in entries[:start]} == set(range(1, 12))


def test_results_are_rendered_in_the_order_of_the_calls() -> None:
    """Whichever came back first: the transcript is the same."""
    entries = [human(1, "go"), ai(2, "", "a", "b"), tool(3, "second", "b"), tool(4, "first", "a")]
    assert [part.content for part in render(first_view("v"), entries, {}).parts][2:] == ["first", "second"]


def test_a_call_that_nobody_can_answer_any_more_blocks_nothing() -> None:
    """One orphaned call, spoken after, gets a stand-in and may be compacted; it never disables compaction."""
    entries = [human(1, "go"), ai(2, "", "lost"), human(3, "never mind"), ai(4, "fine"), human(5, "next")]
    assert [group.is_open for group in groups_of(entries)] == [False] * 5
    kinds = [part.kind for part in render(first_view("v"), entries, {}).parts]
    assert kinds[2] is PartRole.ABANDONED


def test_a_call_at_the_end_is_open() -> None:
    """Its result may still come: the group stays, and nothing stands in."""
    entries = [human(1, "go"), ai(2, "", "a", "b"), tool(3, "one", "a")]
    assert [group.is_open for group in groups_of(entries)] == [False, True]
    assert len(render(first_view("v"), entries, {}).parts) == 3


def test_an_open_wait_in_the_middle_stays() -> None:
    """What somebody still waits for is never covered, however old."""
    entries = [human(1, "go"), ai(2, "may I?", is_open=True), *(human(seq, "and more of it") for seq in range(3, 30))]
    policy = Policy(keep_last_turns=1, min_gain=0.0, keep_first_request=False)
    entries.append(ai(30, "yes"))
    entries.append(human(31, "go on"))
    plan = plan_compaction(Situation(view=first_view("v"), entries=entries, segments={}), policy)
    assert isinstance(plan, Plan)
    assert 2 not in plan.covered
    assert {1, 3, 29, 30} <= set(plan.covered)


def test_a_second_result_of_the_same_call_becomes_reference() -> None:
    """An interim result and the final one share an id: the first answers, the second is not lost."""
    entries = [human(1, "go"), ai(2, "", "a"), tool(3, "started", "a"), ai(4, "it runs"), tool(5, "finished", "a")]
    parts = render(first_view("v"), entries, {}).parts
    assert parts[2].content == "started"
    assert parts[-1].kind is PartRole.REFERENCE
    assert "finished" in str(parts[-1].content)
    assert orphans_chat(parts) == []


def test_a_late_result_stays_with_its_call() -> None:
    """A result that comes after somebody spoke belongs to the group of the message that asked."""
    entries = [human(1, "go"), ai(2, "", "a"), human(3, "hello?"), tool(4, "late", "a"), human(5, "ok")]
    assert [(group.start, group.end) for group in groups_of(entries)] == [(0, 1), (1, 4), (4, 5)]
    assert pair_results(entries).late == {3: 1}


def test_messages_of_one_entry_and_linked_messages_stay_together() -> None:
    """One journal entry is never cut, nor a reasoning item and what follows it."""
    entries = [
        human(1, "a"),
        human(1, "b", message=1),
        ai(2, "thinks", links=("r1",)),
        ai(3, "says", links=("r1",)),
        human(4, "c"),
    ]
    assert [(group.start, group.end) for group in groups_of(entries)] == [(0, 2), (2, 4), (4, 5)]


def test_one_message_may_answer_several_calls() -> None:
    """Each call gets its own part of it."""
    both = tool(3, "one", "a").parts + tool(3, "two", "b").parts
    result = message(3, Role.TOOL, "", answers=("a", "b"), parts=both)
    parts = render(first_view("v"), [human(1, "go"), ai(2, "", "a", "b"), result, ai(4, "done")], {}).parts
    assert [part.content for part in parts[2:4]] == ["one", "two"]
    assert orphans_chat(parts) == []
