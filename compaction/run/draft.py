"""A draft of a compaction: what its plan comes to, before anything is written."""

import secrets
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from sqlalchemy import Connection

from threadmark.compaction.input.analysis import Analyses
from threadmark.compaction.ledger import History, histories
from threadmark.compaction.loading.prior_analysis import known_analyses
from threadmark.compaction.loading.thread_loader import Loaded, MessageCounter
from threadmark.compaction.model.plan import Plan
from threadmark.compaction.model.records import Order
from threadmark.compaction.policy.paid_replies import PaidReplies
from threadmark.compaction.run.executor import compact_in_executor
from threadmark.compaction.run.proposal import Aborted, CompactionRequest, Proposal
from threadmark.compaction.store import holds, ledger_rows
from threadmark.compaction.summary import TokenCounter
from threadmark.state import Database, FoldCache, new_id, to_us

__all__ = ["Tools", "draft"]


class Tools(Protocol):
    """What a draft, or a whole performance, works with."""

    database: Database
    count: TokenCounter
    count_message: MessageCounter
    fold_cache: FoldCache | None
    now: Callable[[], datetime]
    beating: holds.Beating


async def draft(
    tools: Tools,
    loaded: Loaded,
    plan: Plan,
    order: Order,
    compaction_id: str,
    summariser: PaidReplies | None,
    *,
    analyses: Analyses | None = None,
) -> Proposal | Aborted:
    """What the plan comes to; nothing is written."""
    absorbed = [loaded.segments[each].compaction_id for each in plan.absorbed]
    request = CompactionRequest(
        compaction_id=compaction_id,
        thread_ref=f"{loaded.thread.tenant_id}/{loaded.thread.thread_id}",
        segment_id=compaction_id,
        view_id=new_id(to_us(tools.now())),
        situation=loaded.situation(order.base_tokens),
        plan=plan,
        policy=order.policy,
        secret=secrets.token_bytes(32),
        previous_root=loaded.current_view.ledger_root,
        history=await tools.database.read(lambda connection: _history(connection, absorbed)),
    )
    known = await known_analyses(tools.database, loaded.thread.number) if analyses is None else analyses
    return await compact_in_executor(request, known, summariser, tools.count)


def _history(connection: Connection, compaction_ids: list[str]) -> dict[str, History]:
    """What the ledgers of the absorbed segments say, in the order of the compactions."""
    return histories(
        row for compaction_id in sorted(compaction_ids) for row in ledger_rows.read_rows(connection, compaction_id)
    )
