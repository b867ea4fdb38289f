"""Planning: which entries leave the view, which tool outputs are masked, and when there is nothing to win."""

from collections.abc import Iterable, Sequence

from threadmark.compaction.input.groups import Group, groups_of
from threadmark.compaction.input.source import Role, SourceEntry
from threadmark.compaction.model.plan import Plan, Refusal, RefusalReason, Situation
from threadmark.compaction.model.policy import Policy
from threadmark.compaction.view.items import Masked, Pin, Segment, Summary, live_seqs

__all__ = ["MASK_TOKENS", "SEGMENT_OVERHEAD_TOKENS", "plan_compaction"]

MASK_TOKENS = 45  #: what a stub costs
SEGMENT_OVERHEAD_TOKENS = 70  #: what an empty summary costs


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
