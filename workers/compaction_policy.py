"""When and how the threads of an agent are compacted by themselves."""

from dataclasses import dataclass, field

import msgspec

from compaction import Policy, SummariserKind

__all__ = ["CompactionPolicy"]

#: Where a policy names no target, a compaction aims at this share of `request_tokens_max`.
TARGET_SHARE = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPolicy:
    """An agent's policy of compaction.

    Attributes:
        request_tokens_max: Above so many tokens of the next real request (system text, tools and messages, counted
            with o200k_base) the thread is compacted before the model is called.
        turns: After so many runs since the last compaction the thread is compacted in the background; None: never.
        idle_s: A thread that nobody has moved for so long is compacted in the background; None: never.
        summariser: Who writes the summaries.
        policy: What a compaction keeps, how far it goes, and what it may cost.
    """

    request_tokens_max: int = 60_000
    turns: int | None = None
    idle_s: float | None = None
    summariser: SummariserKind = SummariserKind.EXTRACTIVE
    policy: Policy = field(default_factory=Policy)

    def __post_init__(self) -> None:
        """Raises ValueError for a bound that no thread could keep."""
        for name in ("request_tokens_max", "turns", "idle_s"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} is {value!r}; it is above 0")

    @property
    def needs_price(self) -> bool:
        """Whether it bounds in money what a model costs."""
        return self.summariser is SummariserKind.MODEL and self.policy.cost_picos_max is not None

    @property
    def with_target(self) -> Policy:
        """The policy, with a target below the bound: a compaction that just reached the bound would be the next one's
        beginning.
        """
        if self.policy.target_tokens is not None:
            return self.policy
        return msgspec.structs.replace(self.policy, target_tokens=round(self.request_tokens_max * TARGET_SHARE))
