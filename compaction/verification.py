"""Verification from the log alone: the chain of the ledgers, their words, and every unit counted again."""

import msgspec
from sqlalchemy import Connection

from threadmark.compaction.atoms import EXTRACTOR_VERSION
from threadmark.compaction.input.analysis import Analyses
from threadmark.compaction.input.source import Role, SourceEntry
from threadmark.compaction.ledger import GENESIS, LedgerDamaged, recheck_rows, verify_rows
from threadmark.compaction.loading.thread_loader import MessageCounter, entries_as_of
from threadmark.compaction.model.records import Compaction
from threadmark.compaction.store import ledger_rows, orders, views
from threadmark.compaction.summary import estimate_tokens
from threadmark.state import get_thread

__all__ = ["LedgerCheck", "check_compaction", "check_thread"]


class LedgerCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What a verification found: `damage` names the first difference, or there is none.

    `recounted` is False for a ledger of an earlier extractor: its seals, its messages and parts, and the places and
    words of its rows were checked, but not that it left no value out.
    """

    compaction_id: str
    row_count: int
    ledger_root: str
    recounted: bool = True
    damage: str | None = None


def check_compaction(connection: Connection, done: Compaction) -> LedgerCheck:
    """Whether a committed compaction's rows are those that were sealed, and are all that its entries hold."""
    ledger = ledger_rows.read_rows(connection, done.compaction_id)
    recounts = done.extractor_version == EXTRACTOR_VERSION
    damage = None
    try:
        verify_rows(ledger, done.prev_ledger_root, done.ledger_root)
        recheck_rows(ledger, _covered_by(connection, done), Analyses(), recounts=recounts)
    except LedgerDamaged as error:
        damage = str(error)
    return LedgerCheck(
        compaction_id=done.compaction_id,
        row_count=len(ledger),
        ledger_root=done.ledger_root,
        recounted=recounts,
        damage=damage,
    )


def check_thread(connection: Connection, tenant_id: str, thread_id: str) -> list[LedgerCheck]:
    """Every ledger of a thread and the chain over them, oldest first. Raises NotFound."""
    thread = get_thread(connection, tenant_id, thread_id)
    committed = [
        each
        for each in orders.list_compactions(connection, thread.number, count_max=None, oldest_first=True)
        if each.ordinal
    ]
    committed.sort(key=lambda each: each.ordinal)
    checks: list[LedgerCheck] = []
    previous = GENESIS
    for each in committed:
        check = check_compaction(connection, each)
        if check.damage is None and each.prev_ledger_root != previous:
            check = msgspec.structs.replace(check, damage="the ledger before it is not the one that it was chained to")
        checks.append(check)
        previous = each.ledger_root
    if (
        checks
        and checks[-1].damage is None
        and views.read_current_view(connection, thread.number).ledger_root != previous
    ):
        checks[-1] = msgspec.structs.replace(checks[-1], damage="the thread names another last ledger")
    return checks


def _covered_by(connection: Connection, done: Compaction) -> list[SourceEntry]:
    """The covered entries as they were when the ledger was sealed, the erased ones without words."""
    entries = entries_as_of(connection, done.thread, done.branch, done.head_seq, MessageCounter(estimate_tokens))
    placed = {entry.position for entry in entries}
    # A covered message that the journal has no more, or that was erased on another branch when this was sealed.
    entries += [
        SourceEntry(seq=position.seq, message=position.message, role=role, erased=True)
        for position, role in views.erased_in(connection, done.thread).items()
        if position not in placed
    ]
    return [entry for entry in entries if _is_covered(done, entry.seq, entry.role)]


def _is_covered(done: Compaction, seq: int, role: Role) -> bool:
    if done.plan is None:
        return False
    # A compaction that only masks accounts for the tool outputs that it masked.
    return seq in done.plan.covered or (seq in done.plan.masked and role is Role.TOOL)
