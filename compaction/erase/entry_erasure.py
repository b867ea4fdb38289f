"""Erasure of what entries said: from ledgers, summaries, caches and the outbox, in one unit. Chains still verify."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import msgspec
from sqlalchemy import Connection

from threadmark.compaction import tables
from threadmark.compaction.erase.summary_erasure import written_again
from threadmark.compaction.input.analysis import Analyses
from threadmark.compaction.input.source import SourceEntry
from threadmark.compaction.input.thread_loader import Loaded, MessageCounter, load_by_number
from threadmark.compaction.ledger import Status, erase_rows, totals_of
from threadmark.compaction.records import Compaction
from threadmark.compaction.store import erasures, orders, recalls, replies, views
from threadmark.compaction.store import ledger_rows as rows
from threadmark.compaction.summary import TokenCounter
from threadmark.compaction.view import Segment
from threadmark.state.threads.thread_numbers import lock_number

__all__ = ["ErasedCounts", "erase_entries"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedCounts:
    """What an erasure took out of compaction."""

    messages: int = 0
    rows: int = 0
    segments: int = 0
    promotions: int = 0


def erase_entries(
    connection: Connection,
    thread: int,
    seqs: Collection[int],
    *,
    count: TokenCounter,
    count_message: MessageCounter,
) -> ErasedCounts:
    """Erase the messages of these entries (by `seq`) wherever compaction keeps their words. Repeatable.

    Their rows keep place, status before and digest, so every ledger still verifies; summaries that covered one are
    written again from what is left; views show `[erased]`. Do it before the journal loses the entries: from then on
    this package remembers their places. Raises NotFound.
    """
    erased = frozenset(seqs)
    # Locked: an analysis of the words that is being kept now is there when analyses are forgotten below.
    lock_number(connection, thread)
    loaded = load_by_number(connection, thread, count_message)
    gone = [entry for entry in loaded.entries if entry.seq in erased]
    erasures.add_erasures(connection, thread, gone)
    after = load_by_number(connection, thread, count_message)
    row_count = segment_count = 0
    done = orders.list_compactions(connection, thread, count_max=None)
    by_id = {each.compaction_id: each for each in done}
    for each in done:
        row_count += _erase_rows(connection, each, erased)
    for segment in views.segments_of_thread(connection, thread):
        if erased & set(segment.covered):
            _write_again(connection, segment, by_id[segment.compaction_id], after, count)
            segment_count += 1
    rows.forget_analyses(connection, thread)
    replies.forget_replies(connection, [each.compaction_id for each in done])
    return ErasedCounts(
        messages=len(gone),
        rows=row_count,
        segments=segment_count,
        promotions=erasures.erase_promotions(connection, thread, erased),
    )


def _erase_rows(connection: Connection, done: Compaction, erased: frozenset[int]) -> int:
    before = rows.read_rows(connection, done.compaction_id)
    after = erase_rows(before, erased)
    changed = {number: row for number, (old, row) in enumerate(zip(before, after, strict=True)) if old is not row}
    # By the names that they had: an erased row is named by its digest.
    gone = [before[number].row_id for number in changed]
    if gone:
        recalls.forget_recalls(connection, done.compaction_id, gone)
    if changed:
        rows.put_rows(connection, done.compaction_id, changed)
        connection.execute(
            tables.compaction.update()
            .where(tables.compaction.c.compaction_id == done.compaction_id)
            .values(totals=msgspec.json.encode(totals_of(after)))
        )
    return len(changed)


def _write_again(
    connection: Connection, segment: Segment, done: Compaction, loaded: Loaded, count: TokenCounter
) -> None:
    covered: Sequence[SourceEntry] = [entry for entry in loaded.entries if entry.seq in set(segment.covered)]
    ledger = rows.read_rows(connection, done.compaction_id)
    left = [row for row in ledger if row.status is not Status.ERASED]
    views.put_segment(connection, written_again(segment, covered, left, Analyses(), done.policy, count))
