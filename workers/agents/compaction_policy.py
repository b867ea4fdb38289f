"""When and how the threads of an agent are compacted by themselves."""

import re
from dataclasses import dataclass, field

import msgspec

from threadmark.compaction import Policy, SummariserKind

__all__ = ["CompactionPolicy", "version_of"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

#: Where a policy names no target, a compaction aims at this share of `request_tokens_max`.
TARGET_SHARE = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPolicy:
    """An agent's policy of compaction.

    Attributes:
        request_tokens_max: Above so many tokens of the next real request (system text, tools and messages, counted
            with o200k_base) the thread is compacted before the model is called.
        turns: After so many runs since the last compaction the thread is compacted in the background; None: never.
        idle_s: A thread that has not changed for so long is compacted in the background; None: never.
        summariser: Who writes the summaries.
        policy: What a compaction keeps, how far it goes, and what it may cost; or the name of a policy that the tenant
            keeps, looked up when a compaction is due. An unknown name is logged, and nothing is compacted.
    """

    request_tokens_max: int = 60_000
    turns: int | None = None
    idle_s: float | None = None
    summariser: SummariserKind = SummariserKind.EXTRACTIVE
    policy: Policy | str = field(default_factory=Policy)

    def __post_init__(self) -> None:
        """Raises ValueError for a bound that no thread could keep."""
        for name in ("request_tokens_max", "turns", "idle_s"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} is {value!r}; it is above 0")
        if isinstance(self.policy, str) and not _NAME.fullmatch(self.policy):
            raise ValueError(f"policy is {self.policy!r}; no policy is kept by such a name")

    @property
    def needs_price(self) -> bool:
        """Whether it bounds in money what a model costs."""
        capped = isinstance(self.policy, Policy) and self.policy.cost_picos_max is not None
        return self.summariser is SummariserKind.MODEL and capped

    def aimed(self, policy: Policy) -> Policy:
        """The policy, with a target below the bound: a compaction that just reached the bound would be the next one's
        beginning.
        """
        if policy.target_tokens is not None:
            return policy
        return msgspec.structs.replace(policy, target_tokens=round(self.request_tokens_max * TARGET_SHARE))


def version_of(policy: Policy) -> str:
    """What tells orders under one occasion apart: a kept policy may have another version when they come again."""
    return "" if policy.name is None else f"/{policy.name}@{policy.version}"
