"""Summaries: by excerpts without a model, by a model behind a protocol, and the validator that refuses the rest."""

from typing import TYPE_CHECKING

from threadmark.lazy import lazy_exports

if TYPE_CHECKING:
    from threadmark.compaction.summary.drafts import Draft, Line, TokenCounter, estimate_tokens, passage_of, text_of
    from threadmark.compaction.summary.extractive import extractive_draft
    from threadmark.compaction.summary.model import (
        Admission,
        DraftRefused,
        Refused,
        Summariser,
        SummariserFailed,
        SummaryReply,
        model_draft,
    )
    from threadmark.compaction.summary.prompts import PROMPT_VERSION, SECTIONS, SummaryPrompt, prompts_for
    from threadmark.compaction.summary.validate import check_inventions, check_summary
else:
    __getattr__, __dir__ = lazy_exports(__name__, __file__)

__all__ = [
    "PROMPT_VERSION",
    "SECTIONS",
    "Admission",
    "Draft",
    "DraftRefused",
    "Line",
    "Refused",
    "Summariser",
    "SummariserFailed",
    "SummaryPrompt",
    "SummaryReply",
    "TokenCounter",
    "check_inventions",
    "check_summary",
    "estimate_tokens",
    "extractive_draft",
    "model_draft",
    "passage_of",
    "prompts_for",
    "text_of",
]
