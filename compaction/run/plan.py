"""Planning: which entries leave the view, which tool outputs are masked, and when there is nothing to win."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from threadmark.compaction.input.groups import Group, groups_of
from threadmark.compaction.input.source import Role, SourceEntry
from threadmark.compaction.policy.policy import Policy
from threadmark.compaction.view.items import Masked, Pin, Segment, Summary, View, live_seqs

__all__ = ["MASK_TOKENS", "SEGMENT_OVERHEAD_TOKENS", "Plan", "Refusal", "RefusalReason", "Situation", "plan_compaction"]

MASK_TOKENS = 45  #: what a stub costs
SEGMENT_OVERHEAD_TOKENS = 70  #: what an empty summary costs


class RefusalReason(StrEnum):
    """Why there is no plan."""

    RUN_IN_PROGRESS = "run_in_progress"
    NOTHING_TO_COVER = "nothing_to_cover"
    GAIN_TOO_SMALL = "gain_too_small"
    FLOOR_EXCEEDS_TARGET = "floor_exceeds_target"
    TARGET_ALREADY_MET = "target_already_met"
    BREAKER_OPEN = "breaker_open"


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing is to be done; nothing was changed. `floor_tokens` can never be won back by compacting."""

    reason: RefusalReason
    tokens_before: int
    floor_tokens: int
    target_tokens: int | None = None

    @property
    def sentence(self) -> str:
        """Why, for people."""
        if self.reason is RefusalReason.RUN_IN_PROGRESS:
            return "a run holds the thread"
        return (
            f"nothing to do ({self.reason}): the request has {self.tokens_before} tokens,"
            f" {self.floor_tokens} of them can never leave"
        )


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan is made from: the view, all entries of the thread in order, and the view's segments.

    `base_tokens` is what the request has beside the thread: the agent's system text and its tools.
    """

    view: View
    entries: Sequence[SourceEntry]
    segments: Mapping[str, Segment]
    base_tokens: int = 0
    run_in_progress: bool = False

    def head_seq(self) -> int:
        """The last entry's `seq`; 0 for a thread without entries."""
        return self.entries[-1].seq if self.entries else 0


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a compaction will do. All token counts are of the same counter over the whole request.

    `covered` leave the view for the new segment, `absorbed` are older segments whose entries are covered again, from
    the entries themselves. `masked` stay with a stub. A plan without `covered` needs no summariser.
    """

    view_id: str
    covered: tuple[int, ...]
    masked: tuple[int, ...]
    absorbed: tuple[str, ...]
    rank: int
    tokens_before: int
    floor_tokens: int
    covered_tokens: int  #: of the original entries, those of absorbed segments among them
    saved_tokens_max: int
    summary_tokens: int
    appendix_tokens: int
    floor_exceeds_target: bool = False

    @property
    def needs_summary(self) -> bool:
        """Whether anything is to be summarised."""
        return bool(self.covered)


def plan_compaction(situation: Situation, policy: Policy) -> Plan | Refusal:
    """The plan, or why there is none. Pure; the same situation has the same plan."""
    counted = _Counted(situation, policy)
    if situation.run_in_progress:
        return counted.refuse(RefusalReason.RUN_IN_PROGRESS)
    if not counted.movable:
        return counted.refuse(RefusalReason.NOTHING_TO_COVER)
    target = policy.target_tokens
    if target is not None and counted.tokens_before <= target:
        return counted.refuse(RefusalReason.TARGET_ALREADY_MET)
    masking = counted.masking()
    if target is not None and masking.saved_tokens_max and counted.tokens_before - masking.saved_tokens_max <= target:
        return masking if _wins(masking, policy) else counted.refuse(RefusalReason.GAIN_TOO_SMALL)
    plan = counted.summary()
    if _wins(plan, policy):
        return plan
    too_high = target is not None and counted.floor_tokens > target
    return counted.refuse(RefusalReason.FLOOR_EXCEEDS_TARGET if too_high else RefusalReason.GAIN_TOO_SMALL)


def _wins(plan: Plan, policy: Policy) -> bool:
    """An empty summary is priced first: where even that saves too little, no summary does."""
    return plan.saved_tokens_max > 0 and plan.saved_tokens_max >= policy.min_gain * plan.tokens_before


class _Counted:
    """The situation with its floor and its movable groups, counted once."""

    def __init__(self, situation: Situation, policy: Policy) -> None:
        self._situation, self._policy = situation, policy
        seqs = live_seqs(situation.view, situation.head_seq())
        self._stubs = {item.seq for item in situation.view.items if isinstance(item, Masked)}
        live = [entry for entry in situation.entries if entry.seq in seqs or entry.seq in self._stubs]
        pinned = {item.seq for item in situation.view.items if isinstance(item, Pin)}
        self.movable = [live[group.start : group.end] for group in _movable_groups(live, policy)]
        moving = {entry.seq for group in self.movable for entry in group}
        self._floor = {entry.seq for entry in live} - moving
        self._segment_tokens = sum(situation.segments[each].tokens for each in situation.view.segment_ids())
        self.tokens_before = (
            situation.base_tokens + sum(map(self._tokens, live)) + self._segment_tokens + MASK_TOKENS * len(pinned)
        )
        self.floor_tokens = self.tokens_before - sum(self._tokens(entry) for group in self.movable for entry in group)

    def _tokens(self, entry: SourceEntry) -> int:
        if entry.role is Role.TOOL and entry.seq in self._stubs:
            return min(MASK_TOKENS, entry.tokens)
        return entry.tokens

    def refuse(self, reason: RefusalReason) -> Refusal:
        return Refusal(
            reason=reason,
            tokens_before=self.tokens_before,
            floor_tokens=self.floor_tokens,
            target_tokens=self._policy.target_tokens,
        )

    def masking(self) -> Plan:
        """Mask the old tool outputs that are worth it, whole entries at a time."""
        worth = [
            entry
            for group in self.movable
            for entry in group
            if entry.role is Role.TOOL
            and entry.seq not in self._stubs
            and entry.tokens >= max(self._policy.mask_tokens_min, MASK_TOKENS + 1)
        ]
        saved = sum(entry.tokens - MASK_TOKENS for entry in worth)
        return self._plan(covered=(), masked=tuple(sorted({entry.seq for entry in worth})), absorbed=(), saved=saved)

    def summary(self) -> Plan:
        """Cover every movable group, and the last segments of the same rank."""
        absorbed, rank = _absorbed(self._situation)
        covered = {entry.seq for group in self.movable for entry in group}
        saved = sum(self._tokens(entry) for group in self.movable for entry in group)
        for segment in absorbed:
            # What was brought back and belongs to the floor now is not covered a second time.
            covered.update(seq for seq in segment.covered if seq not in self._floor)
            saved += segment.tokens
        names = tuple(segment.segment_id for segment in absorbed)
        return self._plan(
            covered=tuple(sorted(covered)), masked=(), absorbed=names, saved=saved - SEGMENT_OVERHEAD_TOKENS, rank=rank
        )

    def _plan(
        self, *, covered: tuple[int, ...], masked: tuple[int, ...], absorbed: tuple[str, ...], saved: int, rank: int = 0
    ) -> Plan:
        inside = set(covered)
        covered_tokens = sum(entry.tokens for entry in self._situation.entries if entry.seq in inside)
        target = self._policy.target_tokens
        return Plan(
            view_id=self._situation.view.view_id,
            covered=covered,
            masked=masked,
            absorbed=absorbed,
            rank=rank,
            tokens_before=self.tokens_before,
            floor_tokens=self.floor_tokens,
            covered_tokens=covered_tokens,
            saved_tokens_max=saved,
            summary_tokens=self._policy.summary_budget(covered_tokens),
            appendix_tokens=self._policy.appendix_budget(covered_tokens),
            floor_exceeds_target=target is not None and self.floor_tokens > target,
        )


def _movable_groups(live: Sequence[SourceEntry], policy: Policy) -> Iterable[Group]:
    """Groups that may leave: before the last turns, without system text, pins, open waits and the first request."""
    tail = _tail_start(live, policy.keep_last_turns)
    first_request = next((at for at, entry in enumerate(live) if entry.role is Role.HUMAN), -1)
    for group in groups_of(live):
        inside = range(group.start, group.end)
        if group.is_open or group.end > tail:
            continue
        if policy.keep_first_request and first_request in inside:
            continue
        if any(live[at].role is Role.SYSTEM or live[at].pinned for at in inside):
            continue
        yield group


def _tail_start(live: Sequence[SourceEntry], turns: int) -> int:
    """Where the last turns begin; a turn begins with a person's message. With fewer turns, everything is tail."""
    starts = [
        at
        for at, entry in enumerate(live)
        if entry.role is Role.HUMAN and (at == 0 or live[at - 1].role is not Role.HUMAN)
    ]
    return starts[-turns] if len(starts) >= turns else 0


def _absorbed(situation: Situation) -> tuple[list[Segment], int]:
    """The last segments that the new one takes in, and its rank: like carrying in a binary counter.

    So there are never more segments than the logarithm of the number of compactions, and no entry is summarised more
    often than that.
    """
    segments = [situation.segments[item.segment_id] for item in situation.view.items if isinstance(item, Summary)]
    rank = 0
    absorbed: list[Segment] = []
    while segments and segments[-1].rank <= rank:
        absorbed.append(segments.pop())
        rank += 1
    return absorbed, rank
