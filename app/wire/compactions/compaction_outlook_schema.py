"""What dry runs of jobs found, as it is shown."""

import msgspec

from threadmark.app.wire.compactions.compaction_schema import Covers, ShownCompaction, ShownRejection, StatusName
from threadmark.compaction import Order, Outlook, spell_money

__all__ = ["outlook_to_wire"]


def outlook_to_wire(found: Outlook, order: Order) -> ShownCompaction:
    """What a dry run of a job found of a thread, as the dry run of that thread alone is shown."""
    return ShownCompaction(
        compaction_id=None,
        thread_id=found.thread_id,
        status=msgspec.convert(found.status, StatusName),
        dry_run=True,
        trigger=order.trigger,
        summariser=order.summariser,
        strategy=found.strategy,
        covers=None if found.covers is None else Covers(*found.covers),
        tokens_before=found.tokens_before,
        tokens_after=found.tokens_after,
        floor_tokens=found.floor_tokens,
        prompt_tokens=found.prompt_tokens,
        output_tokens=found.output_tokens,
        cost=None if found.cost is None else spell_money(found.cost),
        shown_ratio=found.shown_ratio,
        ledger=found.totals,
        critical_dropped=found.critical_dropped,
        introduced=found.introduced,
        ledger_root="",
        prev_ledger_root="",
        view_id=None,
        rejections=[ShownRejection(*each) for each in found.rejections],
        error_code=found.error_code,
        error=found.error,
        policy=msgspec.to_builtins(order.policy, order="deterministic"),
        requested_by=order.requested_by,
        created_at=None,
        committed_at=None,
    )
