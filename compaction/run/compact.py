"""One compaction, from plan to proposal: draft, ledger, kept facts, validation, down the ladder until one holds.

Pure but for the summariser: nothing is stored here. A proposal is what one transaction commits; an abort changes
nothing.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from threadmark.compaction.errors import PlanOutdated
from threadmark.compaction.input.analysis import Analyses
from threadmark.compaction.input.source import Position, Role, SourceEntry
from threadmark.compaction.ledger import (
    Account,
    Judged,
    Ledger,
    Passage,
    RowKey,
    Shown,
    close,
    dropped_in,
    judge,
    judge_critical,
)
from threadmark.compaction.model.records import Rejection
from threadmark.compaction.run.next_view import next_view
from threadmark.compaction.run.passages import passages_of
from threadmark.compaction.run.planning import SEGMENT_OVERHEAD_TOKENS
from threadmark.compaction.run.promotion_choice import promotions_of
from threadmark.compaction.run.proposal import Aborted, CompactionRequest, Proposal
from threadmark.compaction.summary import (
    Admission,
    Draft,
    DraftRefused,
    Line,
    Refused,
    Summariser,
    SummaryPrompt,
    SummaryReply,
    TokenCounter,
    check_inventions,
    check_summary,
    estimate_tokens,
    extractive_draft,
    model_draft,
    passage_of,
    text_of,
)
from threadmark.compaction.summary.appendix import make_appendix
from threadmark.compaction.summary.draft_repair import without_false_lines
from threadmark.compaction.summary.footer import footer_of
from threadmark.compaction.view.items import Segment, View
from threadmark.compaction.view.stubs import segment_text, trust_of

__all__ = ["compact"]


async def compact(
    request: CompactionRequest,
    analyses: Analyses,
    summariser: Summariser | None = None,
    count: TokenCounter = estimate_tokens,
    admit: Admission | None = None,
) -> Proposal | Aborted:
    """Try the rungs in order: masking alone where the plan says so; else the model, the model stricter, excerpts.

    `admit` is asked before a draft by the model begins. Raises PlanOutdated when the view has moved since the plan was
    made. Exceptions of a summariser other than
    SummariserFailed are defects and pass.
    """
    work = _Work(request, analyses, count)
    if not request.plan.needs_summary:
        return work.mask_only()
    rejections: list[Rejection] = []
    asked = None if summariser is None else _Counted(summariser)
    if asked is not None:
        for strategy in ("model", "model_strict"):
            refused = str(rejections[-1].reason) if rejections else None
            try:
                draft = await model_draft(
                    work.covered,
                    asked,
                    chunk_tokens=request.policy.chunk_tokens,
                    summary_tokens=request.plan.summary_tokens,
                    prompt_tokens_max=request.policy.prompt_tokens_max - asked.prompt_tokens,
                    count=count,
                    refused=refused,
                    admit=admit,
                )
                return asked.noted(work.propose(draft, rejections))
            except DraftRefused as error:
                rejections.append(Rejection(strategy, error.reason, error.detail))
                if error.reason is Refused.COST_CAP:
                    break  # the stricter prompt costs no less
    try:
        draft = extractive_draft(work.covered, analyses, request.plan.summary_tokens, count)
        proposal = work.propose(draft, rejections)
        return proposal if asked is None else asked.noted(proposal)
    except DraftRefused as error:
        rejections.append(Rejection("extractive", error.reason, error.detail))
    return Aborted(compaction_id=request.compaction_id, rejections=tuple(rejections))


class _Counted:
    """A summariser that counts what it was shown: the stricter attempt has what the first one left of the cap.

    And what all its replies cost, by the model's own count: a draft that was not taken was paid for as well.
    """

    def __init__(self, summariser: Summariser) -> None:
        self._summariser = summariser
        self.prompt_tokens = 0
        self._paid = (0, 0)

    async def summarise(self, prompt: SummaryPrompt) -> SummaryReply:
        """The reply."""
        self.prompt_tokens += prompt.prompt_tokens
        reply = await self._summariser.summarise(prompt)
        self._paid = (self._paid[0] + reply.prompt_tokens, self._paid[1] + reply.output_tokens)
        return reply

    def noted(self, proposal: Proposal) -> Proposal:
        """The proposal, with the tokens of all replies on the way to it."""
        prompt_tokens, output_tokens = self._paid
        return msgspec.structs.replace(proposal, prompt_tokens=prompt_tokens, output_tokens=output_tokens)


class _Work:
    """The covered range, and what is made of it."""

    def __init__(self, request: CompactionRequest, analyses: Analyses, count: TokenCounter) -> None:
        situation, plan = request.situation, request.plan
        if situation.view.view_id != plan.view_id:
            raise PlanOutdated(plan.view_id, f"the thread stands at view {situation.view.view_id!r}")
        self._request, self._analyses, self._count = request, analyses, count
        leaving = set(plan.covered) | set(plan.masked)
        self.covered = [entry for entry in situation.entries if entry.seq in leaving]
        if {entry.seq for entry in self.covered} != leaving:
            raise PlanOutdated(plan.view_id, "a covered entry is not there any more")
        self._others = [entry for entry in situation.entries if entry.seq not in leaving]

    def mask_only(self) -> Proposal:
        """Stubs in the place of old tool outputs; no summary, the same account."""
        tools = [entry for entry in self.covered if entry.role is Role.TOOL]
        account = self._account(None, tools, {entry.position: Shown.MASKED for entry in tools})
        judged = judge(account, self._analyses)
        return self._close(account, judged, None, Draft(strategy="mask", lines=()), [])

    def propose(self, draft: Draft, rejections: Sequence[Rejection]) -> Proposal:
        """Account for the draft, repair it, append what must be kept, account again. Raises DraftRefused."""
        request = self._request
        lines = draft.lines
        by_model = draft.strategy != "extractive"
        if by_model:
            self._check(draft, lines)
        judged, units = judge_critical(self._summary_account(lines), self._analyses)
        if by_model:
            check_inventions(judged, passage_of("", text_of(lines)), request.policy.introduced_share_max)
            repaired = without_false_lines(lines, judged, request.policy.rules)
            if repaired != lines:
                lines = repaired
                judged, units = judge_critical(self._summary_account(lines), self._analyses)
        appendix = make_appendix(
            judged.lost(request.policy.rules),
            {entry.position: entry for entry in self.covered},
            self._analyses,
            request.plan.appendix_tokens,
            self._count,
        )
        account = self._summary_account((*lines, *appendix.lines), appendix.left_out)
        return self._close(
            account,
            judge(account, self._analyses, units),
            text_of((*lines, *appendix.lines)),
            draft,
            rejections,
        )

    def _check(self, draft: Draft, lines: Sequence[Line]) -> None:
        text = text_of(lines)
        check_summary(
            draft,
            text,
            self.covered,
            passage_of("", text),
            self._analyses,
            covered_tokens=self._request.plan.covered_tokens,
            count=self._count,
        )

    def _summary_account(self, lines: Sequence[Line], over_budget: frozenset[RowKey] = frozenset()) -> Account:
        shown = {entry.position: Shown.LEFT_OUT if entry.erased else Shown.FULL for entry in self.covered}
        return self._account(text_of(lines), self.covered, shown, over_budget)

    def _account(
        self,
        text: str | None,
        covered: Sequence[SourceEntry],
        shown: Mapping[Position, Shown],
        over_budget: frozenset[RowKey] = frozenset(),
    ) -> Account:
        request = self._request
        return Account(
            compaction_id=request.compaction_id,
            covered=covered,
            others=self._others,
            passages=list(self._passages(text)),
            new_segments={request.segment_id},
            shown=shown,
            rules=request.policy.rules,
            over_budget=over_budget,
            history=request.history,
        )

    def _passages(self, text: str | None) -> Iterator[Passage]:
        """The texts of the view to come."""
        request = self._request
        segment = None if text is None else self._segment(text)
        segments = dict(request.situation.segments)
        if segment is not None:
            segments[segment.segment_id] = segment
        view = self._view(segment)
        yield from passages_of(view, request.situation.entries, segments, self._analyses, self._persistent())

    def _persistent(self) -> set[int]:
        """Entries that every later compaction keeps too."""
        entries = self._request.situation.entries
        first = next((entry.seq for entry in entries if entry.role is Role.HUMAN), None)
        pinned = {entry.seq for entry in entries if entry.pinned}
        return pinned | ({first} if self._request.policy.keep_first_request and first is not None else set())

    def _segment(self, text: str) -> Segment:
        request = self._request
        return Segment(
            segment_id=request.segment_id,
            compaction_id=request.compaction_id,
            text=text,
            covered=request.plan.covered,
            rank=request.plan.rank,
            trust=trust_of(self.covered),
            message_count=len(self.covered),
        )

    def _view(self, segment: Segment | None) -> View:
        request = self._request
        return next_view(
            request.situation.view,
            request.view_id,
            request.compaction_id,
            request.plan,
            segment,
            request.situation.entries,
        )

    def _close(
        self,
        account: Account,
        judged: Judged,
        text: str | None,
        draft: Draft,
        rejections: Sequence[Rejection],
    ) -> Proposal:
        request, policy = self._request, self._request.policy
        promotions = promotions_of(judged, request.thread_ref, policy.promote_count_max) if policy.promote else ()
        promoted = {promotion.key: promotion.promotion_id for promotion in promotions}
        account = msgspec.structs.replace(account, promoted=promoted)
        ledger = close(account, judged, request.secret, request.previous_root)
        segment = None if text is None else self._counted(self._segment(text + footer_of(ledger.rows)), ledger)
        tokens_after = self._tokens_after(segment)
        if tokens_after > (1 - policy.min_gain) * request.plan.tokens_before:
            raise DraftRefused(Refused.NO_GAIN, f"{tokens_after} of {request.plan.tokens_before} tokens")
        return Proposal(
            compaction_id=request.compaction_id,
            view=self._view(segment),
            segment=segment,
            ledger=ledger,
            promotions=promotions,
            strategy=draft.strategy,
            rejections=tuple(rejections),
            tokens_before=request.plan.tokens_before,
            tokens_after=tokens_after,
            floor_exceeds_target=request.plan.floor_exceeds_target,
        )

    def _counted(self, segment: Segment, ledger: Ledger) -> Segment:
        """The segment with the counts of the ledger, which the model sees."""
        dropped = dropped_in(ledger.rows)
        counted = msgspec.structs.replace(
            segment, dropped_count=dropped.unit_count, critical_dropped_count=dropped.critical_count
        )
        return msgspec.structs.replace(counted, tokens=self._count(segment_text(counted)))

    def _tokens_after(self, segment: Segment | None) -> int:
        plan = self._request.plan
        if segment is None:
            return plan.tokens_before - plan.saved_tokens_max
        return plan.tokens_before - plan.saved_tokens_max - SEGMENT_OVERHEAD_TOKENS + segment.tokens
