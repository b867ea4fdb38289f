"""Views: what the model sees grows only at its end, moves as a value, and comes back to the byte."""

import random

import msgspec
import pytest

from tests.support.compaction_threads import PLANTED, Thread, ai, fuzzed_history, human, message, talk, tool
from tests.support.provider_pairs import orphans_chat
from threadmark.compaction.drops.restore import restore_all, restore_drops, restore_range
from threadmark.compaction.errors import PlanOutdated, ViewBroken
from threadmark.compaction.input.source import Role
from threadmark.compaction.ledger import Status, UnitKind
from threadmark.compaction.model.plan import Plan, Refusal, RefusalReason, Situation
from threadmark.compaction.model.policy import Policy
from threadmark.compaction.policy.breaker import Attempt, breaker
from threadmark.compaction.run.compact import compact
from threadmark.compaction.run.planning import plan_compaction
from threadmark.compaction.run.proposal import Proposal
from threadmark.compaction.view import Live, PartRole, Pin, RenderedPart, Summary, View, diff_views, first_view, render


def rendered(thread: Thread) -> tuple[RenderedPart, ...]:
    """The parts that the model is sent now."""
    return render(thread.view, thread.entries, thread.segments).parts


def render_hash(thread: Thread, view: View) -> str:
    """The hash of a view of the thread."""
    return render(view, thread.entries, thread.segments).render_hash


async def test_ten_levels_come_back_to_the_byte() -> None:
    """Each level restored from the top renders as it did, and so does the top after undoing all of it (G8)."""
    thread = Thread(talk(20, 1, planted=PLANTED[:5]))
    levels: list[tuple[View, str]] = []
    for level in range(10):
        levels.append((thread.view, ""))
        assert isinstance(await thread.compact(), Proposal)
        thread.entries = [*thread.entries, *talk(6, 20 + level, start=thread.entries[-1].seq + 1)]
    hashes = [render_hash(thread, view) for view, _ in levels]
    top = thread.view
    assert len(set(hashes)) == 10
    for (view, _), expected in reversed(list(zip(levels, hashes, strict=True))):
        back = restore_all(thread.view, view, f"back-{view.view_id}")
        assert render_hash(thread, back) == expected
        assert back.parent_id == thread.view.view_id
        assert back.version == thread.view.version + 1
        thread.view = back
    undone = restore_all(thread.view, top, "undone")
    assert render_hash(thread, undone) == render_hash(thread, top)


@pytest.mark.parametrize("seed", range(60))
async def test_a_restored_view_is_the_old_view(seed: int) -> None:
    """For any history: compacted and restored, it renders byte for byte as before, with what came later at its end."""
    thread = Thread(fuzzed_history(seed, 50) or talk(3, seed), Policy(keep_last_turns=1, min_gain=0.0))
    before = thread.view
    parts = rendered(thread)
    if isinstance(await thread.compact(), Proposal):
        assert rendered(thread) != parts
        thread.view = restore_all(thread.view, before, "back")
        assert rendered(thread) == parts


async def test_the_prefix_is_the_same_between_compactions() -> None:
    """Turn after turn, the request begins with the bytes of the one before; only a compaction changes that (G17)."""
    thread = Thread(talk(12, 1, planted=PLANTED[:4]))
    assert isinstance(await thread.compact(), Proposal)
    previous = rendered(thread)
    for turn in range(20):
        thread.entries = [*thread.entries, *talk(1, turn, start=thread.entries[-1].seq + 1)]
        now = rendered(thread)
        assert now[: len(previous)] == previous
        assert len(now) > len(previous)
        previous = now


async def test_what_is_appended_meanwhile_stays_once_and_in_order() -> None:
    """Entries that arrive while a compaction runs are in its view, behind it, each once (G13)."""
    chance = random.Random(5)
    for seed in range(50):
        thread = Thread(talk(8, seed))
        plan = plan_compaction(thread.situation(), thread.policy)
        assert isinstance(plan, Plan)
        request = thread.request(plan)
        late = talk(chance.randint(1, 5), seed, start=thread.entries[-1].seq + 1)
        proposal = await compact(request, thread.analyses)
        assert isinstance(proposal, Proposal)
        thread.entries = [*thread.entries, *late]
        thread.commit(proposal)
        seqs = [part.seq for part in rendered(thread) if part.kind is PartRole.MESSAGE]
        assert seqs == sorted(seqs, key=lambda seq: seq or 0)
        assert len(set(seqs)) == len(seqs)
        assert {entry.seq for entry in late} <= set(seqs)


async def test_a_plan_over_an_older_view_is_refused() -> None:
    """The view moved in between: nothing is proposed."""
    thread = Thread(talk(8, 1))
    plan = plan_compaction(thread.situation(), thread.policy)
    assert isinstance(plan, Plan)
    await thread.compact()
    with pytest.raises(PlanOutdated):
        await compact(thread.request(plan), thread.analyses)


async def test_system_text_pins_and_the_first_request_stay_in_place() -> None:
    """Byte for byte, whatever is covered around them (I2, I3)."""
    entries = [
        message(1, Role.SYSTEM, "You are careful."),
        human(2, "Plan my move to Lyon."),
        *talk(5, 1, start=3),
        human(40, "Remember: the piano goes first.", pinned=True),
        *talk(5, 2, start=41),
    ]
    thread = Thread(entries)
    assert isinstance(await thread.compact(), Proposal)
    texts = [part.content for part in rendered(thread) if part.kind is PartRole.MESSAGE]
    assert texts[:2] == ["You are careful.", "Plan my move to Lyon."]
    assert "Remember: the piano goes first." in texts


async def test_a_range_comes_back_in_whole_groups() -> None:
    """Restoring one result restores its call too; the summary stays, and no orphan arises."""
    entries = [*talk(4, 1), ai(30, "", "c1"), tool(31, "the answer is 42", "c1"), *talk(4, 2, start=32)]
    thread = Thread(entries)
    assert isinstance(await thread.compact(), Proposal)
    thread.view = restore_range(thread.view, "r", 31, 31, entries)
    seqs = [part.seq for part in rendered(thread)]
    assert 30 in seqs
    assert 31 in seqs
    assert orphans_chat(rendered(thread)) == []
    assert any(part.kind is PartRole.SUMMARY for part in rendered(thread))
    with pytest.raises(ViewBroken):
        restore_range(thread.view, "r2", 900, 950, entries)


async def test_single_drops_come_back_as_pins() -> None:
    """The exact span stands in the view again, once, and survives the next compactions."""
    thread = Thread(talk(20, 8))
    proposal = await thread.compact()
    assert isinstance(proposal, Proposal)
    drop = next(row for row in proposal.ledger.rows if row.status is Status.DROPPED and row.cls == "url")
    thread.view = restore_drops(thread.view, "p", drop.sources[:1], thread.entries)
    again = restore_drops(thread.view, "p2", drop.sources[:1], thread.entries)
    assert [item for item in again.items if isinstance(item, Pin)] == [
        item for item in thread.view.items if isinstance(item, Pin)
    ]
    for number in range(3):
        pins = [part for part in rendered(thread) if part.kind is PartRole.PIN]
        assert len(pins) == 1
        assert drop.text in str(pins[0].content)
        thread.entries = [*thread.entries, *talk(5, number, start=thread.entries[-1].seq + 1)]
        await thread.compact()
    with pytest.raises(ViewBroken):
        restore_drops(thread.view, "p3", [msgspec.structs.replace(drop.sources[0], end=10**9)], thread.entries)


async def test_a_diff_names_what_came_and_went() -> None:
    """Entries, segments and pins, both ways."""
    thread = Thread(talk(10, 1))
    before = thread.view
    proposal = await thread.compact()
    assert isinstance(proposal, Proposal)
    assert proposal.segment is not None
    diff = diff_views(before, thread.view, thread.entries)
    assert diff.entries_left == proposal.segment.covered
    assert diff.segments_joined == (proposal.segment.segment_id,)
    back = diff_views(thread.view, before, thread.entries)
    assert back.entries_joined == diff.entries_left
    assert back.segments_left == diff.segments_joined
    assert diff_views(before, before, thread.entries).entries_left == ()


def test_a_broken_view_is_named() -> None:
    """An entry twice, a missing segment, a pin on nothing: an error, never a guess."""
    entries = talk(3, 1)
    for items in ((Summary("none", 1, 2),), (Pin(99, 0, 0, 1),)):
        with pytest.raises(ViewBroken):
            render(View(view_id="v", items=items), entries, {})
    twice = View(view_id="v", items=(Live(1, 3), Live(2)))
    with pytest.raises(ViewBroken):
        plan_compaction(Situation(view=twice, entries=entries, segments={}), Policy())


@pytest.mark.parametrize(
    ("situation", "policy", "reason"),
    [
        ({"run_in_progress": True}, Policy(keep_last_turns=1), RefusalReason.RUN_IN_PROGRESS),
        ({}, Policy(keep_last_turns=50), RefusalReason.NOTHING_TO_COVER),
        ({}, Policy(keep_last_turns=1, target_tokens=10**6), RefusalReason.TARGET_ALREADY_MET),
        ({"base_tokens": 10**6}, Policy(keep_last_turns=1), RefusalReason.GAIN_TOO_SMALL),
        ({"base_tokens": 10**6}, Policy(keep_last_turns=1, target_tokens=100), RefusalReason.FLOOR_EXCEEDS_TARGET),
    ],
)
def test_where_nothing_is_to_be_won_there_is_no_plan(
    situation: dict[str, object], policy: Policy, reason: RefusalReason
) -> None:
    """The refusal has its reason and its numbers; nothing is changed."""
    view = first_view("v")
    plan = plan_compaction(Situation(view=view, entries=talk(10, 1), segments={}, **situation), policy)  # type: ignore[arg-type]
    assert isinstance(plan, Refusal)
    assert plan.reason is reason
    assert 0 < plan.floor_tokens <= plan.tokens_before


def test_an_empty_thread_has_no_plan() -> None:
    """No "there is no history" summary is ever written (I17)."""
    plan = plan_compaction(Situation(view=first_view("v"), entries=[], segments={}), Policy())
    assert isinstance(plan, Refusal)
    assert plan.reason is RefusalReason.NOTHING_TO_COVER


@pytest.mark.parametrize("window", [8_000, 32_000, 128_000, 1_000_000])
async def test_a_floor_above_the_window_makes_no_loop(window: int) -> None:
    """Over the same floor there are two attempts in vain and then a refusal that names the floor (G6)."""
    thread = Thread(talk(6, 1), Policy(keep_last_turns=2, min_gain=0.0, target_tokens=100))
    attempts: list[Attempt] = []
    made = 0
    for _ in range(40):
        situation = msgspec.structs.replace(thread.situation(), base_tokens=window)
        plan = breaker(plan_compaction(situation, thread.policy), attempts)
        if isinstance(plan, Plan):
            made += 1
            attempts.append(Attempt(plan.floor_tokens, was_effective=not plan.floor_exceeds_target))
        else:
            assert plan.reason in (RefusalReason.BREAKER_OPEN, RefusalReason.FLOOR_EXCEEDS_TARGET)
            assert plan.floor_tokens > window
    assert made <= 2


async def test_masking_comes_first_and_may_be_enough() -> None:
    """Old tool outputs become stubs with a way back, calls and results stay paired, and no summary is made."""
    entries = [human(1, "go"), human(2, "now")]
    for number in range(5):
        entries.extend(
            (ai(10 + number * 2, "", f"c{number}"), tool(11 + number * 2, f"row {number} " * 400, f"c{number}"))
        )
    entries.extend(talk(3, 1, start=40))
    thread = Thread(entries, Policy(keep_last_turns=2, min_gain=0.1, target_tokens=1_500))
    proposal = await thread.compact()
    assert isinstance(proposal, Proposal)
    assert proposal.strategy == "mask"
    assert proposal.segment is None
    assert proposal.tokens_after <= 1_500
    parts = rendered(thread)
    assert orphans_chat(parts) == []
    stubs = [part for part in parts if part.kind is PartRole.MASKED]
    assert len(stubs) == 5
    assert "entry 11" in str(stubs[0].content)
    thread.view = restore_range(thread.view, "back", 11, 11, entries)
    assert sum(part.kind is PartRole.MASKED for part in rendered(thread)) == 4


async def test_masked_outputs_are_summarised_from_the_entries() -> None:
    """A later summary covers what was a stub, and its account goes back to the output itself (I16)."""
    entries = [
        human(1, "go"),
        human(2, "x"),
        ai(3, "", "c"),
        tool(4, "host db-1.example.com " * 90, "c"),
        *talk(3, 1, start=5),
    ]
    thread = Thread(entries, Policy(keep_last_turns=2, min_gain=0.0, target_tokens=700))
    first = await thread.compact()
    assert isinstance(first, Proposal)
    assert first.strategy == "mask"
    thread.policy = Policy(keep_last_turns=2, min_gain=0.0)
    second = await thread.compact()
    assert isinstance(second, Proposal)
    hosts = [
        row
        for row in second.ledger.rows
        if row.cls == "host" and row.unit is UnitKind.ATOM and row.canon == "db-1.example.com"
    ]
    assert len(hosts) == 1
    assert len(hosts[0].sources) == 90


@pytest.mark.parametrize("bad", [{"keep_last_turns": 0}, {"min_gain": 1.0}, {"min_gain": -0.1}, {"target_tokens": -1}])
def test_a_policy_that_nobody_could_obey_is_refused(bad: dict[str, int]) -> None:
    """At the edge, with a sentence."""
    with pytest.raises(ValueError, match="is"):
        Policy(**bad)  # type: ignore[arg-type]


def test_an_unknown_field_of_a_policy_is_refused() -> None:
    """A field that is not supported is refused, never ignored."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"keep_last_turn": 3}', type=Policy)
