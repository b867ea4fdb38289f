"""What a dry run tells of one thread: the figures of its preview."""

from threadmark.compaction import CompactionStatus, Outlook, Preview, dropped_in, totals_of

__all__ = ["outlook_of"]


def outlook_of(preview: Preview, thread_id: str) -> Outlook:
    """The figures, without a word of the thread."""
    plan, made, refusal, aborted = preview.plan, preview.proposal, preview.refusal, preview.aborted
    if refusal is not None:
        return Outlook(
            thread_id=thread_id,
            status=str(CompactionStatus.REFUSED),
            tokens_before=refusal.tokens_before,
            tokens_after=refusal.tokens_before,
            floor_tokens=refusal.floor_tokens,
            error_code=str(refusal.reason),
            error=refusal.sentence,
        )
    if plan is None:
        raise AssertionError("what is not refused is planned")
    leaving = plan.covered or plan.masked
    covers, before, floor = (leaving[0], leaving[-1]), plan.tokens_before, plan.floor_tokens
    if made is None:
        rejections = aborted.rejections if aborted is not None else ()
        return Outlook(
            thread_id=thread_id,
            status=str(CompactionStatus.ABORTED),
            covers=covers,
            tokens_before=before,
            tokens_after=before,
            floor_tokens=floor,
            cost=preview.cost,
            rejections=tuple((each.strategy, str(each.reason), each.detail) for each in rejections),
            error_code=None if aborted is None else aborted.error_code,
            error=None if aborted is None else aborted.sentence,
        )
    rows = made.ledger.rows
    return Outlook(
        thread_id=thread_id,
        status=str(CompactionStatus.PLANNED),
        strategy=made.strategy,
        covers=covers,
        tokens_before=before,
        tokens_after=made.tokens_after,
        floor_tokens=floor,
        prompt_tokens=made.prompt_tokens,
        output_tokens=made.output_tokens,
        cost=preview.cost,
        shown_ratio=made.ledger.shown_ratio,
        totals={unit: dict(counts) for unit, counts in totals_of(rows).items()},
        critical_dropped=dropped_in(rows).critical_count,
        introduced=sum(row.status == "introduced" for row in rows),
        rejections=tuple((each.strategy, str(each.reason), each.detail) for each in made.rejections),
    )
