"""Policies: what a compaction keeps, how far it goes, and what it may cost. Every bound has a name and a default."""

from enum import StrEnum

import msgspec
from msgspec import UNSET, UnsetType

from threadmark.compaction.ledger.rules import Rules
from threadmark.compaction.model.money import picos_of

__all__ = ["APPENDIX_SHARE", "APPENDIX_TOKENS_MAX", "APPENDIX_TOKENS_MIN", "Policy", "SummariserKind"]

APPENDIX_SHARE = 0.05  #: of the covered tokens
APPENDIX_TOKENS_MIN, APPENDIX_TOKENS_MAX = 300, 1_500
SUMMARY_SHARE = 0.1
SUMMARY_TOKENS_MIN, SUMMARY_TOKENS_MAX = 200, 2_000


class SummariserKind(StrEnum):
    """Who writes the summary."""

    EXTRACTIVE = "extractive"  #: excerpts; no model takes part
    MODEL = "model"  #: the model of the server, and excerpts where it fails


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a thread is compacted. Token counts are those of the counter that the caller brings.

    A policy that a tenant has kept has its `name`, and the `version` that has these values for ever.
    """

    name: str | None = None
    version: int = 1
    keep_last_turns: int = 4  #: turns that stay verbatim; at least 1, the turn that triggered
    keep_first_request: bool = True
    target_tokens: int | None = None  #: of the whole request; masking alone is enough where it reaches this
    min_gain: float = 0.1  #: share of the request's tokens that a compaction must save
    mask_tokens_min: int = 200  #: a shorter tool output is not worth a stub
    summary_tokens: int | None = None  #: None: a tenth of the covered tokens, 200 to 2,000
    appendix_tokens: int | None = None  #: None: a twentieth of the covered tokens, 300 to 1,500
    chunk_tokens: int = 16_000  #: what one call of the summariser is shown at most
    prompt_tokens_max: int = 1_000_000  #: cost cap: prompt tokens of one compaction, over all calls
    # Not there rather than null: the same order has the same digest as before there was such a cap.
    cost_max: str | UnsetType = UNSET  #: cost cap in money: a decimal, in the currency of the prices
    introduced_share_max: float = 0.25  #: of a summary's atoms; more is an invention
    promote: bool = True
    promote_count_max: int = 50
    rules: Rules = Rules()

    def __post_init__(self) -> None:
        """Raises ValueError for a value that no compaction could obey."""
        if self.keep_last_turns < 1:
            raise ValueError("keep_last_turns is at least 1: the turn that triggered stays")
        if not 0.0 <= self.min_gain < 1.0:
            raise ValueError("min_gain is a share: at least 0, below 1")
        for name in ("mask_tokens_min", "chunk_tokens", "prompt_tokens_max", "promote_count_max"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is not negative")
        for name in ("target_tokens", "summary_tokens", "appendix_tokens"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"{name} is not negative")
        if self.cost_max is not UNSET:
            picos_of(self.cost_max)

    @property
    def cost_picos_max(self) -> int | None:
        """The cap in money, in picos; None: there is none."""
        return None if self.cost_max is UNSET else picos_of(self.cost_max)

    def summary_budget(self, covered_tokens: int) -> int:
        """Tokens that a summary of so many tokens may have."""
        if self.summary_tokens is not None:
            return self.summary_tokens
        return min(SUMMARY_TOKENS_MAX, max(SUMMARY_TOKENS_MIN, round(covered_tokens * SUMMARY_SHARE)))

    def appendix_budget(self, covered_tokens: int) -> int:
        """Tokens that the kept facts of so many tokens may have."""
        if self.appendix_tokens is not None:
            return self.appendix_tokens
        return min(APPENDIX_TOKENS_MAX, max(APPENDIX_TOKENS_MIN, round(covered_tokens * APPENDIX_SHARE)))
