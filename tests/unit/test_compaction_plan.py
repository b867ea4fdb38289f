"""The edges of a plan: what gain is enough, where the tail begins, and which tool outputs are worth a stub."""

from typing import Any

import pytest

from tests.support.compaction_threads import ai, human, tool
from threadmark.compaction.input.source import SourceEntry
from threadmark.compaction.model.plan import Plan, Refusal, RefusalReason, Situation
from threadmark.compaction.model.policy import Policy
from threadmark.compaction.run.planning import MASK_TOKENS, SEGMENT_OVERHEAD_TOKENS, plan_compaction
from threadmark.compaction.view import first_view


def plan(entries: list[SourceEntry], base_tokens: int = 0, **policy: Any) -> Plan | Refusal:
    """The plan for a thread that was never compacted; everything before the last turn may leave."""
    rules: dict[str, Any] = {"keep_last_turns": 1, "keep_first_request": False, "min_gain": 0.0}
    situation = Situation(view=first_view("v"), entries=entries, segments={}, base_tokens=base_tokens)
    return plan_compaction(situation, Policy(**rules | policy))


def two_turns(movable_tokens: int) -> list[SourceEntry]:
    """A turn of so many tokens that may leave, and one of 20 that stays."""
    return [
        human(1, "go", tokens=movable_tokens - 10),
        ai(2, "gone", tokens=10),
        human(3, "and now?", tokens=10),
        ai(4, "here", tokens=10),
    ]


@pytest.mark.parametrize(("base_tokens", "is_enough"), [(1_309, True), (1_310, True), (1_311, False)])
def test_a_gain_of_just_the_least_share_is_enough(base_tokens: int, is_enough: bool) -> None:
    """200 tokens of 1,600 are an eighth."""
    made = plan(two_turns(200 + SEGMENT_OVERHEAD_TOKENS), base_tokens, min_gain=0.125)

    if is_enough:
        assert isinstance(made, Plan)
        assert made.saved_tokens_max == 200
    else:
        assert isinstance(made, Refusal)
        assert made.reason is RefusalReason.GAIN_TOO_SMALL


def test_what_saves_nothing_is_not_planned() -> None:
    """Though the policy asks for no least share: an empty summary costs as much as what would leave."""
    even = plan(two_turns(SEGMENT_OVERHEAD_TOKENS))

    assert isinstance(even, Refusal)
    assert even.reason is RefusalReason.GAIN_TOO_SMALL
    assert isinstance(plan(two_turns(SEGMENT_OVERHEAD_TOKENS + 1)), Plan)


def test_the_tail_begins_with_the_first_message_of_its_first_turn() -> None:
    """Messages of a person in a row are one turn; with fewer turns than are kept, nothing leaves."""
    entries = [
        human(1, "one", tokens=500),
        human(2, "and", tokens=500),
        ai(3, "first", tokens=500),
        human(4, "two", tokens=500),
        human(5, "and", tokens=500),
        ai(6, "second", tokens=500),
        human(7, "three", tokens=500),
        ai(8, "third", tokens=500),
    ]

    def covered(turns: int) -> tuple[int, ...] | RefusalReason:
        made = plan(entries, keep_last_turns=turns)
        return made.covered if isinstance(made, Plan) else made.reason

    assert covered(1) == (1, 2, 3, 4, 5, 6)
    assert covered(2) == (1, 2, 3)
    assert covered(3) is RefusalReason.NOTHING_TO_COVER
    assert covered(4) is RefusalReason.NOTHING_TO_COVER

    entries = [ai(1, "welcome", tokens=500), human(2, "one", tokens=20), ai(3, "first", tokens=20)]
    assert covered(1) == (1,)


def with_outputs(one: int, other: int) -> list[SourceEntry]:
    """A turn with two tool outputs of so many tokens, and a turn that stays; 100 tokens beside the outputs."""
    return [
        human(1, "go", tokens=20),
        ai(2, "", "c1", "c2", tokens=20),
        tool(3, "one", "c1", tokens=one),
        tool(4, "other", "c2", tokens=other),
        ai(5, "done", tokens=20),
        human(6, "and now?", tokens=20),
        ai(7, "here", tokens=20),
    ]


@pytest.mark.parametrize(
    ("mask_tokens_min", "one", "other", "masked", "saved"),
    [
        (200, 200, 199, (3,), 155),
        (200, 199, 201, (4,), 156),
        (0, MASK_TOKENS, MASK_TOKENS + 1, (4,), 1),
        (MASK_TOKENS + 1, MASK_TOKENS + 1, MASK_TOKENS, (3,), 1),
        (MASK_TOKENS + 2, MASK_TOKENS + 1, MASK_TOKENS + 2, (4,), 2),
    ],
)
def test_an_output_of_just_the_least_length_is_masked(
    mask_tokens_min: int, one: int, other: int, masked: tuple[int, ...], saved: int
) -> None:
    """And never one that is no longer than its stub, whatever the policy says."""
    tokens = 100 + one + other

    made = plan(with_outputs(one, other), mask_tokens_min=mask_tokens_min, target_tokens=tokens - saved)

    assert isinstance(made, Plan)
    assert (made.masked, made.covered, made.saved_tokens_max) == (masked, (), saved)


def test_masking_is_enough_where_it_reaches_the_target_to_the_token() -> None:
    """One token further down, and the turn is summarised; at the target already, nothing is done."""
    entries = with_outputs(200, 300)

    enough = plan(entries, target_tokens=600 - 155 - 255)
    too_little = plan(entries, target_tokens=600 - 155 - 255 - 1)
    met = plan(entries, target_tokens=600)

    assert isinstance(enough, Plan)
    assert enough.masked == (3, 4)
    assert isinstance(too_little, Plan)
    assert too_little.covered == (1, 2, 3, 4, 5)
    assert isinstance(met, Refusal)
    assert met.reason is RefusalReason.TARGET_ALREADY_MET
    assert isinstance(plan(entries, target_tokens=599), Plan)
