"""The commit of a compaction, and of a restore: one unit in which the view moves with everything that explains it.

The rows of a ledger are there before (see `run/ahead.py`); from the commit on they are read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Connection

from threadmark.compaction.errors import HoldLost, RunInProgress, ViewMoved
from threadmark.compaction.input.analysis import PartAnalysis
from threadmark.compaction.ledger import Status, dropped_in, totals_of
from threadmark.compaction.loading.thread_loader import Loaded
from threadmark.compaction.model.records import Cause, Compaction, CompactionStatus, KeptView
from threadmark.compaction.run.proposal import Proposal
from threadmark.compaction.run.view_entries import change_to
from threadmark.compaction.store import ledger_rows, orders, replies, rows_ahead, views
from threadmark.compaction.view import View
from threadmark.state import LeaseLost, Thread, ThreadGone, ViewAct, append_external, to_us
from threadmark.state.tasks.tasks import NewTask, add_task
from threadmark.state.threads.thread_numbers import is_overwritten, lock_number

__all__ = ["PROMOTE", "Commit", "ViewMove", "commit_compaction", "move_view", "still_there"]

#: The kind of the task that delivers a compaction's promotions to memory.
PROMOTE = "promote"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A finished compaction. `fence` is that of the lease under which it was made inside of a run; None outside."""

    compaction: Compaction
    holder: str
    loaded: Loaded
    proposal: Proposal
    covered: tuple[int, ...]
    absorbed: tuple[str, ...]  #: segments whose entries are covered again
    added: Mapping[str, tuple[PartAnalysis, ...]] = field(default_factory=dict)
    fence: int | None = None
    now: datetime


def commit_compaction(connection: Connection, done: Commit) -> Compaction:
    """Segment, ledger, promotions and the move of the view, or nothing. Repeatable.

    Raises RunInProgress, LeaseLost, ThreadGone, ViewMoved or HoldLost; nothing is written then. ViewMoved also where
    messages were erased since the work began: it may have their words. The rows of the ledger are there already.
    """
    loaded, proposal = done.loaded, done.proposal
    thread = still_there(connection, loaded, done.fence)
    stored = orders.find_compaction(connection, done.compaction.compaction_id)
    if stored is not None and stored.view_id == proposal.view.view_id:
        return stored
    compaction_id = done.compaction.compaction_id
    before, now_us = loaded.current_view, to_us(done.now)
    view = msgspec.structs.replace(proposal.view, version=before.version + 1)
    committed = orders.changed(connection, compaction_id, done.holder, _ended(done, view))
    if committed is None:
        raise HoldLost(compaction_id, done.holder)
    if rows_ahead.count_rows(connection, compaction_id) != len(proposal.ledger.rows):
        # An erasure took them with it.
        raise ViewMoved(thread.thread_id, before.view_id)
    if not views.move_current_view(connection, thread.number, before, view, proposal.ledger.root):
        raise ViewMoved(thread.thread_id, before.view_id)
    absorbed = {loaded.segments[segment_id].compaction_id for segment_id in done.absorbed}
    kept = KeptView(
        view=view,
        cause=Cause.COMPACTION,
        ledgers=(*(each for each in loaded.view.ledgers if each not in absorbed), compaction_id),
        head_seq=loaded.thread.head_seq,
        requested_by=done.compaction.requested_by,
        created_at=done.now,
    )
    views.add_view(connection, thread.number, kept)
    orders.set_statuses(connection, absorbed, CompactionStatus.SUPERSEDED, now_us)
    if proposal.segment is not None:
        signature = views.signature_of(proposal.segment.covered, loaded.versions)
        views.add_segment(connection, thread.number, proposal.segment, signature)
    ledger_rows.add_promotions(connection, compaction_id, thread.tenant_id, thread.number, proposal.promotions, now_us)
    if proposal.promotions:
        payload = {"compaction_id": compaction_id}
        add_task(
            connection, NewTask(tenant_id=thread.tenant_id, kind=PROMOTE, key=compaction_id, payload=payload), now_us
        )
    replies.forget_replies(connection, [compaction_id])
    if done.fence is None:
        append_external(connection, thread, change_to(kept, "compacted", committed), now_us)
    return committed


def still_there(connection: Connection, loaded: Loaded, fence: int | None) -> Thread:
    """The thread, locked, if nothing happened to it that the work does not know of. What was appended is welcome.

    Raises RunInProgress, LeaseLost, ThreadGone or ViewMoved.
    """
    thread = lock_number(connection, loaded.thread.number)
    if thread is None:
        raise ThreadGone(loaded.thread.thread_id, loaded.thread.fence)
    if fence is not None and thread.fence != fence:
        raise LeaseLost(thread.thread_id, fence)
    if fence is None and thread.owner is not None:
        raise RunInProgress(thread.thread_id)
    changed = thread.lineage != loaded.thread.lineage and fence is None
    erased = views.erased_in(connection, thread.number)
    if erased:
        changed = changed or any(not entry.erased and entry.position in erased for entry in loaded.entries)
    if changed or is_overwritten(connection, thread.number, loaded.thread.head_seq):
        raise ViewMoved(thread.thread_id, loaded.current_view.view_id)
    return thread


def _ended(done: Commit, view: View) -> dict[str, Any]:
    proposal, ledger = done.proposal, done.proposal.ledger
    return {
        "status": CompactionStatus.COMMITTED,
        "view_id": view.view_id,
        "from_seq": done.covered[0],
        "to_seq": done.covered[-1],
        "branch": done.loaded.thread.branch,
        "head_seq": done.loaded.thread.head_seq,
        "tokens_before": proposal.tokens_before,
        "tokens_after": proposal.tokens_after,
        "prompt_tokens": proposal.prompt_tokens,
        "output_tokens": proposal.output_tokens,
        "shown_ratio": ledger.shown_ratio,
        "strategy": proposal.strategy,
        "totals": msgspec.json.encode(totals_of(ledger.rows)),
        "rejections": msgspec.json.encode(proposal.rejections),
        "critical_dropped": dropped_in(ledger.rows).critical_count,
        "introduced": sum(row.status is Status.INTRODUCED for row in ledger.rows),
        "ordinal": view.version,
        "prev_ledger_root": ledger.previous_root,
        "ledger_root": ledger.root,
        "error_code": None,
        "error": None,
        "held_until": 0,
        "rows_ahead": 0,
        "updated_at": to_us(done.now),
        "committed_at": to_us(done.now),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewMove:
    """A move of the view without a compaction: a restore, its undo, an erasure. `ledgers` are those in effect then."""

    loaded: Loaded
    view: View
    cause: Cause
    ledgers: tuple[str, ...]
    requested_by: str
    now: datetime
    act: ViewAct = "restored"
    fence: int | None = None


def move_view(connection: Connection, move: ViewMove) -> KeptView:
    """Keep the view and point the thread at it, or nothing. Raises as `commit_compaction` does."""
    loaded, before = move.loaded, move.loaded.current_view
    thread = still_there(connection, loaded, move.fence)
    view = msgspec.structs.replace(move.view, version=before.version + 1)
    if not views.move_current_view(connection, thread.number, before, view, before.ledger_root):
        raise ViewMoved(thread.thread_id, before.view_id)
    kept = KeptView(
        view=view,
        cause=move.cause,
        ledgers=move.ledgers,
        head_seq=loaded.thread.head_seq,
        requested_by=move.requested_by,
        created_at=move.now,
    )
    views.add_view(connection, thread.number, kept)
    now_us = to_us(move.now)
    left = set(loaded.view.ledgers) - set(move.ledgers)
    again = set(move.ledgers) - set(loaded.view.ledgers)
    orders.set_statuses(connection, left, CompactionStatus.RESTORED, now_us)
    orders.set_statuses(connection, again, CompactionStatus.COMMITTED, now_us)
    if move.fence is None:
        append_external(connection, thread, change_to(kept, move.act), now_us)
    return kept
