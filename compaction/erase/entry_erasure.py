"""Erasure of what entries said: from ledgers, summaries, caches and the outbox. Chains still verify.

It goes in bounded commits, and others write in between: SQLite has one write lock. The places come first: from their
commit on nothing new is made of the words. Rows with the words lose them in batches, and each commit leaves every
ledger verifiable and its counts right. After an interruption it begins again, and what is done stays done.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection

from threadmark.compaction.erase.erased_places import head_of, record_places
from threadmark.compaction.erase.row_erasure import erase_ledger
from threadmark.compaction.erase.summary_erasure import written_again
from threadmark.compaction.input.analysis import Analyses
from threadmark.compaction.input.placement import entries_of
from threadmark.compaction.ledger import Status
from threadmark.compaction.loading.thread_loader import Head, MessageCounter, walk_heads
from threadmark.compaction.store import erasures, orders, replies, rows_ahead, views
from threadmark.compaction.store import ledger_rows as rows
from threadmark.compaction.summary import TokenCounter
from threadmark.compaction.view import Segment
from threadmark.state import Database
from threadmark.state.threads.thread_numbers import lock_number

__all__ = ["ErasedCounts", "erase_entries"]

#: Statements of the outbox, and analyses of messages, that one commit changes.
STATEMENT_COUNT = 200
ANALYSIS_COUNT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedCounts:
    """What an erasure took out of compaction."""

    messages: int = 0
    rows: int = 0
    segments: int = 0
    promotions: int = 0


async def erase_entries(
    database: Database,
    thread: int,
    seqs: Collection[int],
    *,
    count: TokenCounter,
    count_message: MessageCounter,
) -> ErasedCounts:
    """Erase the messages of these entries (by `seq`) wherever compaction keeps their words. Repeatable.

    On every branch: a ledger belongs to the branch that it was made on, and the thread may stand on another one. Their
    rows keep place, status before and digest, so every ledger still verifies; summaries that covered one are written
    again from what is left; views show `[erased]`. Do it before the journal loses the entries: from then on this
    package remembers their places. The words are gone when this returns, and not before. Raises NotFound.
    """
    gone = await record_places(database, thread, frozenset(seqs))
    # With those of earlier erasures: what two entries said is gone when the second one of them goes.
    erased = frozenset({*seqs, *(each.seq for each in await database.read(partial(views.erased_in, thread=thread)))})
    # First what leaves the thread by itself.
    promotion_count = await _erase_promotions(database, thread, erased)
    while await database.write(partial(rows_ahead.remove_condemned, thread=thread), repeatable=True):
        pass
    done = await database.read(partial(orders.list_compactions, thread=thread, count_max=None))
    row_count = 0
    for each in done:
        if each.ordinal:
            row_count += await erase_ledger(database, thread, each.compaction_id, erased)
    now_gone = frozenset({*seqs, *(each.seq for each in gone)})
    segment_count = await _write_again(database, thread, now_gone, count, count_message)
    await _forget_analyses(database, thread)
    compaction_ids = [each.compaction_id for each in done]
    await database.write(partial(replies.forget_replies, compaction_ids=compaction_ids), repeatable=True)
    return ErasedCounts(messages=len(gone), rows=row_count, segments=segment_count, promotions=promotion_count)


async def _erase_promotions(database: Database, thread: int, erased: frozenset[int]) -> int:
    ids = await database.read(partial(erasures.said_by, thread=thread, erased=erased))
    count = 0
    for start in range(0, len(ids), STATEMENT_COUNT):
        some = partial(erasures.erase_promotions, promotion_ids=ids[start : start + STATEMENT_COUNT])
        count += await database.write(some, repeatable=True)
    return count


async def _forget_analyses(database: Database, thread: int) -> None:
    # Those that are there now. Later ones were made without the words, or are refused.
    keys = sorted(await database.read(partial(rows.analysed_keys, thread=thread, of_others=True)))
    for start in range(0, len(keys), ANALYSIS_COUNT):
        some = partial(rows.forget_analyses, thread=thread, keys=keys[start : start + ANALYSIS_COUNT])
        await database.write(some, repeatable=True)


async def _write_again(
    database: Database, thread: int, now_gone: frozenset[int], count: TokenCounter, count_message: MessageCounter
) -> int:
    make = partial(_made_again, thread=thread, now_gone=now_gone, count=count, count_message=count_message)
    while True:
        erasure_count, segments = await database.read(make)
        put = [
            await database.write(
                partial(_put, thread=thread, segment=each, erasure_count=erasure_count), repeatable=True
            )
            for each in segments
        ]
        # Otherwise another erasure has recorded its places, and these texts may have its words: they are made again.
        if all(put):
            return len(segments)


def _put(connection: Connection, thread: int, segment: Segment, erasure_count: int) -> bool:
    if lock_number(connection, thread) is None:
        return True
    if erasures.count_erasures(connection, thread) != erasure_count:
        return False
    views.put_segment(connection, segment)
    return True


def _made_again(
    connection: Connection, thread: int, now_gone: frozenset[int], count: TokenCounter, count_message: MessageCounter
) -> tuple[int, Sequence[Segment]]:
    """The segments that covered one of the entries, each from the messages as they were when it was made."""
    erased = views.erased_in(connection, thread)
    by_id = {each.compaction_id: each for each in orders.list_compactions(connection, thread, count_max=None)}
    at: dict[Head, list[Segment]] = {}
    for segment in views.segments_of_thread(connection, thread):
        if now_gone & set(segment.covered):
            at.setdefault(head_of(by_id[segment.compaction_id]), []).append(segment)
    again: list[Segment] = []
    for head, state in walk_heads(connection, thread, at) if at else ():
        waiting = at.pop(head, [])
        entries = entries_of(state, erased, count_message) if waiting else []
        for segment in waiting:
            done, covered = by_id[segment.compaction_id], set(segment.covered)
            source = [entry for entry in entries if entry.seq in covered]
            left = [row for row in rows.read_rows(connection, done.compaction_id) if row.status is not Status.ERASED]
            again.append(written_again(segment, source, left, Analyses(), done.policy, count))
    return len(erased), again
