"""Compaction: what the model still sees of a long thread, and the receipt for all that it does not.

`CompactionService` has the verbs: order a compaction (`compactions.begin`, the same key is the same compaction),
perform it (`compactions.perform`, may be repeated by anybody), look at views and move them back (`views`), page, search
and export what is gone (`drops`), keep policies by name (`policies`), verify ledgers, erase. All rows are in the
state database, under this package's own migrations.

Below it are rules without I/O: make a `Situation` of a thread's messages, plan it, `compact` it; the `Proposal` is
committed in one transaction: the segment, its ledger, the promotions, and the move of the view. A model is a
`Summariser`. Restoring moves the view, recalling reads the entries, and the ledger says what became of each unit.
"""

from typing import TYPE_CHECKING

from threadmark.lazy import lazy_exports

if TYPE_CHECKING:
    from threadmark.compaction.atoms import EXTRACTOR_VERSION, Atom, AtomClass, extract_atoms
    from threadmark.compaction.clauses import Clause, ClauseClass, extract_clauses
    from threadmark.compaction.compactions import Compactions, Preview
    from threadmark.compaction.drops.drop_queries import Drops, DropSource, FoundDrop
    from threadmark.compaction.drops.drop_search import DropQuery, Recalled, recall_dropped
    from threadmark.compaction.drops.expansion import Expanded, Segments
    from threadmark.compaction.drops.recall_log import PinSuggestion, Recalls
    from threadmark.compaction.drops.restore import restore_all, restore_drops, restore_range
    from threadmark.compaction.erase.summary_erasure import without_erased_pins, written_again
    from threadmark.compaction.errors import (
        BudgetSpent,
        CompactionError,
        HoldLost,
        NothingToUndo,
        PlanOutdated,
        PolicyMoved,
        RunInProgress,
        ViewBroken,
        ViewMoved,
    )
    from threadmark.compaction.input.analysis import Analyses, PartAnalysis, TextAnalysis, analyse
    from threadmark.compaction.input.source import Call, Part, PartKind, Position, Role, SourceEntry, Trust
    from threadmark.compaction.input.transcript import source_entry
    from threadmark.compaction.ledger import (
        GENESIS,
        UNIT_CLASSES,
        History,
        Ledger,
        LedgerDamaged,
        Place,
        Reason,
        Row,
        RowKey,
        Rules,
        Shown,
        Source,
        Status,
        UnitKind,
        balance_of,
        dropped_in,
        erase_rows,
        histories,
        recheck_rows,
        totals_of,
        verify_rows,
    )
    from threadmark.compaction.loading.prior_analysis import Learnt
    from threadmark.compaction.loading.thread_loader import Loaded, MessageCounter, read_loaded
    from threadmark.compaction.migrations import current_revision, head_revision, migrate, schema_gap
    from threadmark.compaction.model.money import AMOUNT_PATTERN, Price, picos_of, price_of, spell_money
    from threadmark.compaction.model.plan import Plan, Refusal, RefusalReason, Situation
    from threadmark.compaction.model.policy import Policy, SummariserKind
    from threadmark.compaction.model.promotion import Promotion
    from threadmark.compaction.model.records import (
        WHOLE_VIEW,
        Cause,
        Compaction,
        CompactionStatus,
        CurrentView,
        Drop,
        DropFilter,
        KeptPolicy,
        KeptView,
        Order,
        QueuedPromotion,
        Rejection,
        Trigger,
    )
    from threadmark.compaction.policy.breaker import Attempt, breaker
    from threadmark.compaction.policy.named_policies import Policies, Precondition, named_policy
    from threadmark.compaction.run.commit import PROMOTE
    from threadmark.compaction.run.compact import compact
    from threadmark.compaction.run.compaction_run import HOLD_S
    from threadmark.compaction.run.planning import plan_compaction
    from threadmark.compaction.run.proposal import Aborted, CompactionRequest, Proposal
    from threadmark.compaction.run.view_entries import act_of, change_to
    from threadmark.compaction.service import CompactionService
    from threadmark.compaction.store.budgets import open_purse, purse_spent
    from threadmark.compaction.store.outlooks import Outlook
    from threadmark.compaction.store.recalls import DropRecall
    from threadmark.compaction.store.thread_rows import forget_thread, remove_thread_rows
    from threadmark.compaction.store.views import erased_in, read_current_view
    from threadmark.compaction.summary import (
        PROMPT_VERSION,
        SECTIONS,
        Refused,
        Summariser,
        SummariserFailed,
        SummaryPrompt,
        SummaryReply,
        TokenCounter,
        estimate_tokens,
    )
    from threadmark.compaction.verification import LedgerCheck
    from threadmark.compaction.view import (
        Item,
        Live,
        Masked,
        PartRole,
        Pin,
        Rendered,
        RenderedCall,
        RenderedPart,
        Segment,
        Summary,
        View,
        ViewDiff,
        diff_views,
        first_view,
        render,
    )
    from threadmark.compaction.view.view_messages import view_messages
    from threadmark.compaction.view_history import ShownView, Views
else:
    __getattr__, __dir__ = lazy_exports(__name__, __file__)

__all__ = [
    "AMOUNT_PATTERN",
    "EXTRACTOR_VERSION",
    "GENESIS",
    "HOLD_S",
    "PROMOTE",
    "PROMPT_VERSION",
    "SECTIONS",
    "UNIT_CLASSES",
    "WHOLE_VIEW",
    "Aborted",
    "Analyses",
    "Atom",
    "AtomClass",
    "Attempt",
    "BudgetSpent",
    "Call",
    "Cause",
    "Clause",
    "ClauseClass",
    "Compaction",
    "CompactionError",
    "CompactionRequest",
    "CompactionService",
    "CompactionStatus",
    "Compactions",
    "CurrentView",
    "Drop",
    "DropFilter",
    "DropQuery",
    "DropRecall",
    "DropSource",
    "Drops",
    "Expanded",
    "FoundDrop",
    "History",
    "HoldLost",
    "Item",
    "KeptPolicy",
    "KeptView",
    "Learnt",
    "Ledger",
    "LedgerCheck",
    "LedgerDamaged",
    "Live",
    "Loaded",
    "Masked",
    "MessageCounter",
    "NothingToUndo",
    "Order",
    "Outlook",
    "Part",
    "PartAnalysis",
    "PartKind",
    "PartRole",
    "Pin",
    "PinSuggestion",
    "Place",
    "Plan",
    "PlanOutdated",
    "Policies",
    "Policy",
    "PolicyMoved",
    "Position",
    "Precondition",
    "Preview",
    "Price",
    "Promotion",
    "Proposal",
    "QueuedPromotion",
    "Reason",
    "Recalled",
    "Recalls",
    "Refusal",
    "RefusalReason",
    "Refused",
    "Rejection",
    "Rendered",
    "RenderedCall",
    "RenderedPart",
    "Role",
    "Row",
    "RowKey",
    "Rules",
    "RunInProgress",
    "Segment",
    "Segments",
    "Shown",
    "ShownView",
    "Situation",
    "Source",
    "SourceEntry",
    "Status",
    "Summariser",
    "SummariserFailed",
    "SummariserKind",
    "Summary",
    "SummaryPrompt",
    "SummaryReply",
    "TextAnalysis",
    "TokenCounter",
    "Trigger",
    "Trust",
    "UnitKind",
    "View",
    "ViewBroken",
    "ViewDiff",
    "ViewMoved",
    "Views",
    "act_of",
    "analyse",
    "balance_of",
    "breaker",
    "change_to",
    "compact",
    "current_revision",
    "diff_views",
    "dropped_in",
    "erase_rows",
    "erased_in",
    "estimate_tokens",
    "extract_atoms",
    "extract_clauses",
    "first_view",
    "forget_thread",
    "head_revision",
    "histories",
    "migrate",
    "named_policy",
    "open_purse",
    "picos_of",
    "plan_compaction",
    "price_of",
    "purse_spent",
    "read_current_view",
    "read_loaded",
    "recall_dropped",
    "recheck_rows",
    "remove_thread_rows",
    "render",
    "restore_all",
    "restore_drops",
    "restore_range",
    "schema_gap",
    "source_entry",
    "spell_money",
    "totals_of",
    "verify_rows",
    "view_messages",
    "without_erased_pins",
    "written_again",
]
