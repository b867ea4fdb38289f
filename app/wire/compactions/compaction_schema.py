"""Compactions as they are ordered and shown."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from threadmark.app.http.body_errors import BodyRefused
from threadmark.app.wire.compactions.compaction_policy_schema import PolicyName
from threadmark.compaction import (
    AMOUNT_PATTERN,
    Compaction,
    Order,
    Policy,
    Preview,
    SummariserKind,
    dropped_in,
    picos_of,
    spell_money,
    totals_of,
)

__all__ = [
    "Covers",
    "Expansion",
    "Money",
    "NewCompaction",
    "NewPins",
    "PinnedSpan",
    "PolicyBody",
    "Restoration",
    "ShownCompaction",
    "ShownRejection",
    "StatusName",
    "policy_of",
]

Tokens = Annotated[int, Meta(ge=0, le=100_000_000)]
Money = Annotated[str, Meta(pattern=AMOUNT_PATTERN)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
StatusName = Literal["planned", "summarising", "committed", "refused", "aborted", "restored", "superseded"]


class PolicyBody(Struct, forbid_unknown_fields=True, kw_only=True):
    """What a compaction keeps, how far it goes and what it may cost; what is left out has its default.

    `target_tokens` is of the whole request; where masking old tool output reaches it, nothing is summarised.
    `appendix_tokens` bounds the kept facts, `prompt_tokens_max` what a model is shown over all calls, `cost_max` what
    they cost: a decimal such as "0.25", in the currency of the server's prices.
    """

    keep_last_turns: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    keep_first_request: bool | None = None
    target_tokens: Tokens | None = None
    min_gain: Annotated[float, Meta(ge=0.0, lt=1.0)] | None = None
    mask_tokens_min: Tokens | None = None
    summary_tokens: Tokens | None = None
    appendix_tokens: Tokens | None = None
    chunk_tokens: Annotated[int, Meta(ge=100, le=1_000_000)] | None = None
    prompt_tokens_max: Tokens | None = None
    cost_max: Money | None = None
    introduced_share_max: Share | None = None
    promote: bool | None = None
    promote_count_max: Annotated[int, Meta(ge=0, le=10_000)] | None = None


def policy_of(body: PolicyBody | None, path: str = "$.policy") -> Policy:
    """The policy that is asked for. Raises BodyRefused for one that no compaction could obey."""
    if body is None:
        return Policy()
    try:
        values = {name: value for name, value in msgspec.structs.asdict(body).items() if value is not None}
        if body.cost_max is not None:
            values["cost_max"] = spell_money(picos_of(body.cost_max))
        return Policy(**values)
    except ValueError as error:
        raise BodyRefused(path, str(error)) from error


class NewCompaction(Struct, forbid_unknown_fields=True, kw_only=True):
    """A compaction to be made.

    `summariser` is `extractive` (excerpts, no model takes part) or `model` (the server's model, and excerpts where it
    fails). `dry_run` does the whole work and writes nothing. `wait` answers when it is over. `policy` is a policy, or
    the name of one under `/compaction-policies`.
    """

    policy: PolicyBody | PolicyName | None = None
    summariser: Literal["extractive", "model"] = "extractive"
    dry_run: bool = False
    wait: bool = False

    def order(self, key: str, requested_by: str, policy: Policy) -> Order:
        """The order, under this key and by the policy that is asked for."""
        return Order(
            key=key,
            policy=policy,
            summariser=SummariserKind(self.summariser),
            requested_by=requested_by,
        )


class Restoration(Struct, forbid_unknown_fields=True, kw_only=True):
    """What is to be seen again.

    `all`: the view before the compaction. `range`: the entries from `from_seq` to `to_seq` as they are. `drops`: the
    spans of `drop_ids`, as pins; the summary stays in both.
    """

    scope: Literal["all", "range", "drops"]
    from_seq: Annotated[int, Meta(ge=1)] | None = None
    to_seq: Annotated[int, Meta(ge=1)] | None = None
    drop_ids: Annotated[list[str], Meta(min_length=1, max_length=200)] | None = None

    def check(self) -> None:
        """Raises BodyRefused where a member is missing, or belongs to another scope."""
        wanted = {"all": set(), "range": {"from_seq", "to_seq"}, "drops": {"drop_ids"}}[self.scope]
        for name in ("from_seq", "to_seq", "drop_ids"):
            if (getattr(self, name) is not None) != (name in wanted):
                what = "is required" if name in wanted else "does not go"
                raise BodyRefused(f"$.{name}", f"{what} with scope {self.scope!r}")
        if self.from_seq is not None and self.to_seq is not None and self.from_seq > self.to_seq:
            raise BodyRefused("$.to_seq", "comes before from_seq")


class Expansion(Struct, forbid_unknown_fields=True, kw_only=True):
    """How much of the entries behind a summary is shown, and from which entry on."""

    budget_tokens: Annotated[int, Meta(ge=1, le=1_000_000)] = 4_000
    from_seq: Annotated[int, Meta(ge=0, le=2**53 - 1)] = 0


class PinnedSpan(Struct, forbid_unknown_fields=True, kw_only=True):
    """A span to be pinned: code points `start` to `end` of a part of a message of the entry `seq`."""

    seq: Annotated[int, Meta(ge=1)]
    start: Annotated[int, Meta(ge=0)]
    end: Annotated[int, Meta(ge=1)]
    part: Annotated[int, Meta(ge=0)] = 0
    message: Annotated[int, Meta(ge=0)] = 0


class NewPins(Struct, forbid_unknown_fields=True, kw_only=True):
    """Spans to be shown word for word, whatever a summary has of their entries."""

    spans: Annotated[list[PinnedSpan], Meta(min_length=1, max_length=200)]


class Covers(Struct):
    """The first and last entry (`seq`) that leave the view."""

    from_seq: int
    to_seq: int


class ShownRejection(Struct):
    """A draft of a summary that was not taken."""

    strategy: str
    reason: str
    detail: str


class ShownCompaction(Struct, kw_only=True):
    """A compaction, or what one would do (`dry_run`: no `compaction_id`, and nothing is kept).

    `status` is `planned` or `summarising` while it is open, `committed`, `refused` (there was nothing to do) or
    `aborted` (it failed, and the view is as it was); later `restored` or `superseded`. `ledger` counts the units of
    the covered entries by unit and status; `total` is all of them but what the summary `introduced`. `shown_ratio` is
    the share of the covered text that the summariser saw. `cost` is what the model's calls have cost, or may have cost
    where the tokens were not counted; null without a price of the model, and before the first call.
    """

    compaction_id: str | None
    thread_id: str
    status: StatusName
    dry_run: bool = False
    trigger: str
    summariser: str
    strategy: str | None
    covers: Covers | None
    tokens_before: int
    tokens_after: int
    floor_tokens: int
    prompt_tokens: int
    output_tokens: int
    cost: str | None = None
    shown_ratio: float
    ledger: dict[str, dict[str, int]]
    critical_dropped: int
    introduced: int
    ledger_root: str
    prev_ledger_root: str
    view_id: str | None
    rejections: list[ShownRejection]
    error_code: str | None
    error: str | None
    policy: dict[str, Any]
    requested_by: str
    created_at: datetime | None
    committed_at: datetime | None

    @classmethod
    def of(cls, done: Compaction, thread_id: str) -> "ShownCompaction":
        """The compaction as it is shown."""
        return cls(
            compaction_id=done.compaction_id,
            thread_id=thread_id,
            status=done.status.value,
            trigger=done.trigger,
            summariser=done.summariser,
            strategy=done.strategy,
            covers=Covers(*done.covers) if done.covers[1] else None,
            tokens_before=done.tokens_before,
            tokens_after=done.tokens_after,
            floor_tokens=done.floor_tokens,
            prompt_tokens=done.prompt_tokens,
            output_tokens=done.output_tokens,
            cost=None if done.cost is None else spell_money(done.cost),
            shown_ratio=done.shown_ratio,
            ledger=_counts(done.totals),
            critical_dropped=done.critical_dropped,
            introduced=done.introduced,
            ledger_root=done.ledger_root,
            prev_ledger_root=done.prev_ledger_root,
            view_id=done.view_id,
            rejections=[ShownRejection(each.strategy, str(each.reason), each.detail) for each in done.rejections],
            error_code=done.error_code,
            error=done.error,
            policy=msgspec.to_builtins(done.policy, order="deterministic"),
            requested_by=done.requested_by,
            created_at=done.created_at,
            committed_at=done.committed_at,
        )

    @classmethod
    def of_preview(cls, preview: Preview, order: Order, thread_id: str) -> "ShownCompaction":
        """What would be done."""
        plan, made, refusal, aborted = preview.plan, preview.proposal, preview.refusal, preview.aborted
        rejections = made.rejections if made else aborted.rejections if aborted else ()
        leaving = () if plan is None else plan.covered or plan.masked
        before = plan.tokens_before if plan else refusal.tokens_before if refusal else 0
        rows = made.ledger.rows if made else ()
        return cls(
            compaction_id=None,
            thread_id=thread_id,
            status="planned" if made else "refused" if refusal else "aborted",
            dry_run=True,
            trigger=order.trigger,
            summariser=order.summariser,
            strategy=made.strategy if made else None,
            covers=Covers(leaving[0], leaving[-1]) if leaving else None,
            tokens_before=before,
            tokens_after=made.tokens_after if made else before,
            floor_tokens=plan.floor_tokens if plan else refusal.floor_tokens if refusal else 0,
            prompt_tokens=made.prompt_tokens if made else 0,
            output_tokens=made.output_tokens if made else 0,
            cost=None if preview.cost is None else spell_money(preview.cost),
            shown_ratio=made.ledger.shown_ratio if made else 0.0,
            ledger=_counts(totals_of(rows)),
            critical_dropped=dropped_in(rows).critical_count,
            introduced=sum(row.status == "introduced" for row in rows),
            ledger_root="",
            prev_ledger_root="",
            view_id=None,
            rejections=[ShownRejection(each.strategy, str(each.reason), each.detail) for each in rejections],
            error_code=str(refusal.reason) if refusal else aborted.error_code if aborted else None,
            error=refusal.sentence if refusal else aborted.sentence if aborted else None,
            policy=msgspec.to_builtins(order.policy, order="deterministic"),
            requested_by=order.requested_by,
            created_at=None,
            committed_at=None,
        )


def _counts(totals: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    return {unit: dict(counts) for unit, counts in totals.items()}
