"""A plan, what it is made from, and why there may be none."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

from threadmark.compaction.input.source import SourceEntry
from threadmark.compaction.view.items import Segment, View

__all__ = ["Plan", "Refusal", "RefusalReason", "Situation"]


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
