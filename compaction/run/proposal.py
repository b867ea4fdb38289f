"""What a compaction is asked and what it answers: a request, and a proposal or an abort."""

from collections.abc import Mapping

import msgspec

from threadmark.compaction.ledger import History, Ledger
from threadmark.compaction.model.plan import Plan, Situation
from threadmark.compaction.model.policy import Policy
from threadmark.compaction.model.promotion import Promotion
from threadmark.compaction.model.records import Rejection
from threadmark.compaction.view.items import Segment, View

__all__ = ["Aborted", "CompactionRequest", "Proposal"]


class CompactionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What one compaction works on, and the names that its results will have.

    `secret` is fresh random bytes (32) that are not kept. `previous_root` is the root of the thread's ledger before.
    `history` comes from the ledgers of the segments that the plan absorbs.
    """

    compaction_id: str
    thread_ref: str
    segment_id: str
    view_id: str
    situation: Situation
    plan: Plan
    policy: Policy
    secret: bytes
    previous_root: str
    history: Mapping[str, History] = {}


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be committed in one transaction: the segment, its ledger, the promotions, and the move of the view."""

    compaction_id: str
    view: View
    segment: Segment | None
    ledger: Ledger
    promotions: tuple[Promotion, ...]
    strategy: str
    rejections: tuple[Rejection, ...]
    tokens_before: int
    tokens_after: int
    floor_exceeds_target: bool
    prompt_tokens: int = 0
    output_tokens: int = 0


class Aborted(msgspec.Struct, frozen=True, kw_only=True):
    """No draft held; the view is as it was."""

    compaction_id: str
    rejections: tuple[Rejection, ...]

    @property
    def error_code(self) -> str:
        """Why the last draft was not taken, for programs."""
        return self.rejections[-1].reason.name.lower()

    @property
    def sentence(self) -> str:
        """Why, for people."""
        return "; ".join(f"{each.strategy}: {each.reason}" for each in self.rejections)
