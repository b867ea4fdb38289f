"""Domain values of the store: orders, compactions, kept views and promotions, as everybody outside sees them."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

import msgspec
from msgspec import UNSET, UnsetType

from threadmark.compaction.ledger import Row
from threadmark.compaction.model.plan import Plan
from threadmark.compaction.model.policy import Policy, SummariserKind
from threadmark.compaction.model.promotion import Promotion
from threadmark.compaction.summary import Refused
from threadmark.compaction.view import View

__all__ = [
    "MOVES",
    "OPEN",
    "WHOLE_VIEW",
    "Cause",
    "Compaction",
    "CompactionStatus",
    "CurrentView",
    "Drop",
    "DropFilter",
    "KeptPolicy",
    "KeptView",
    "Order",
    "QueuedPromotion",
    "Rejection",
    "Trigger",
]

#: The id of the view that every thread has before its first compaction: everything.
WHOLE_VIEW = "whole"


class CompactionStatus(StrEnum):
    """Where a compaction stands; see MOVES."""

    PLANNED = "planned"  #: ordered, and no process performs it right now
    SUMMARISING = "summarising"  #: a process performs it
    COMMITTED = "committed"  #: in effect in the thread's view
    REFUSED = "refused"  #: there was nothing to do; `error_code` has the reason
    ABORTED = "aborted"  #: it failed; the view is as it was
    RESTORED = "restored"  #: what it took away is in the view again
    SUPERSEDED = "superseded"  #: a later compaction covers its entries again


MOVES: dict[CompactionStatus, frozenset[CompactionStatus]] = {
    CompactionStatus.PLANNED: frozenset(
        {CompactionStatus.SUMMARISING, CompactionStatus.REFUSED, CompactionStatus.ABORTED}
    ),
    CompactionStatus.SUMMARISING: frozenset(
        {
            CompactionStatus.PLANNED,
            CompactionStatus.COMMITTED,
            CompactionStatus.REFUSED,
            CompactionStatus.ABORTED,
        }
    ),
    CompactionStatus.COMMITTED: frozenset({CompactionStatus.RESTORED, CompactionStatus.SUPERSEDED}),
    CompactionStatus.RESTORED: frozenset({CompactionStatus.COMMITTED, CompactionStatus.SUPERSEDED}),
    CompactionStatus.SUPERSEDED: frozenset({CompactionStatus.COMMITTED, CompactionStatus.RESTORED}),
    CompactionStatus.REFUSED: frozenset(),
    CompactionStatus.ABORTED: frozenset(),
}
#: Still to be performed.
OPEN = frozenset({CompactionStatus.PLANNED, CompactionStatus.SUMMARISING})


class Trigger(StrEnum):
    """Who wanted a compaction."""

    ON_DEMAND = "on_demand"
    TOKENS = "tokens"  #: the next request of a run would have been too large
    TURNS = "turns"
    IDLE = "idle"
    AGENT = "agent"  #: by a tool of the agent
    BULK = "bulk"  #: by a job over many threads


class Cause(StrEnum):
    """Why a view was made."""

    COMPACTION = "compaction"
    RESTORE = "restore"
    ERASURE = "erasure"


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What is ordered. The same `key` of a tenant is the same compaction for ever.

    `base_tokens` is what a request has beside the thread: the agent's system text and its tools. `purse` is where its
    money comes from, if it is shared.
    """

    key: str
    policy: Policy = Policy()
    trigger: Trigger = Trigger.ON_DEMAND
    summariser: SummariserKind = SummariserKind.EXTRACTIVE
    requested_by: str = ""
    base_tokens: int = 0
    purse: str | UnsetType = UNSET

    def fingerprint(self, thread_id: str) -> str:
        """SHA-256 (hex) of the order for this thread: equal for equal orders, whichever server computes it."""
        return hashlib.sha256(msgspec.json.encode((thread_id, self), order="sorted")).hexdigest()


class CurrentView(msgspec.Struct, frozen=True, kw_only=True):
    """Where a thread stands: its view, the version of this pointer, and the root of its last ledger."""

    view_id: str
    version: int
    ledger_root: str


class KeptView(msgspec.Struct, frozen=True, kw_only=True):
    """A view as it is kept. `ledgers` are the compactions in effect in it, oldest first."""

    view: View
    cause: Cause
    ledgers: tuple[str, ...] = ()
    head_seq: int = 0  #: the thread's last entry when it was made
    requested_by: str = ""
    created_at: datetime | None = None  #: None for the view that every thread has from the beginning


class KeptPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a tenant's named policy. `policy` bears name and version; None: the name was given up with it."""

    name: str
    version: int
    policy: Policy | None
    requested_by: str
    created_at: datetime


class Rejection(msgspec.Struct, frozen=True):
    """A draft that was not taken."""

    strategy: str
    reason: Refused
    detail: str = ""


class Compaction(msgspec.Struct, frozen=True, kw_only=True):
    """One compaction. `covers` are the first and last `seq` that leave the view (0, 0 while nothing is planned)."""

    compaction_id: str
    tenant_id: str
    thread: int
    key: str
    status: CompactionStatus
    trigger: Trigger
    summariser: SummariserKind
    requested_by: str
    policy: Policy
    base_tokens: int
    purse: str | UnsetType
    cost: int | None  #: picos that its calls have cost, or may have cost; None: its model has no price
    plan: Plan | None
    signature: str
    branch: int
    head_seq: int
    covers: tuple[int, int]
    tokens_before: int
    tokens_after: int
    floor_tokens: int
    prompt_tokens: int
    output_tokens: int
    shown_ratio: float
    strategy: str | None
    totals: Mapping[str, Mapping[str, int]]
    rejections: tuple[Rejection, ...]
    critical_dropped: int
    introduced: int
    ordinal: int
    prev_ledger_root: str
    ledger_root: str
    extractor_version: int
    prompt_version: int
    view_id: str | None
    error_code: str | None
    error: str | None
    attempts: int
    held_until_us: int
    created_at: datetime
    updated_at: datetime
    committed_at: datetime | None

    @property
    def is_open(self) -> bool:
        """Whether it is still to be performed."""
        return self.status in OPEN


class Drop(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a ledger, with the name by which it is restored."""

    drop_id: str
    compaction_id: str
    thread: int
    number: int  #: its place in the ledger
    row: Row


class DropFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which lines of a ledger; all conditions hold. Without `statuses`, those that say that something is gone."""

    statuses: tuple[str, ...] = ("dropped", "altered", "promoted", "paraphrased")
    classes: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    critical: bool | None = None
    text: str = ""  #: a part of the unit's text, in any case
    from_seq: int | None = None
    to_seq: int | None = None


class QueuedPromotion(msgspec.Struct, frozen=True, kw_only=True):
    """A statement on its way to memory."""

    promotion: Promotion
    compaction_id: str
    tenant_id: str
    thread: int
    status: str  #: queued, done, failed, erased
    attempts: int = 0
    memory_id: str | None = None
    error: str | None = None
