"""Erasure of what entries said: from ledgers, summaries, caches and the outbox, in one unit. Chains still verify."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
from sqlalchemy import Connection

from threadmark.compaction import tables
from threadmark.compaction.erase.summary_erasure import written_again
from threadmark.compaction.input.analysis import Analyses
from threadmark.compaction.input.placement import entries_of
from threadmark.compaction.input.source import Position, Role
from threadmark.compaction.input.thread_loader import Head, MessageCounter, walk_heads
from threadmark.compaction.ledger import Status, dropped_in, erase_rows, totals_of
from threadmark.compaction.records import Compaction
from threadmark.compaction.store import erasures, orders, recalls, replies, views
from threadmark.compaction.store import ledger_rows as rows
from threadmark.compaction.summary import TokenCounter
from threadmark.compaction.view import Segment
from threadmark.state import NotFound
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

    On every branch: a ledger belongs to the branch that it was made on, and the thread may stand on another one. Their
    rows keep place, status before and digest, so every ledger still verifies; summaries that covered one are written
    again from what is left; views show `[erased]`. Do it before the journal loses the entries: from then on this
    package remembers their places. Raises NotFound.
    """
    # Locked: an analysis of the words that is being kept now is there when analyses are forgotten below.
    if lock_number(connection, thread) is None:
        raise NotFound("Thread", str(thread))
    done = orders.list_compactions(connection, thread, count_max=None)
    gone = _messages_of(connection, thread, done, frozenset(seqs))
    erasures.add_erasures(connection, thread, gone)
    # With those of earlier erasures: what two entries said is gone when the second one of them goes.
    erased = frozenset({*seqs, *(each.seq for each in views.erased_in(connection, thread))})
    now_gone = {*seqs, *(each.seq for each in gone)}
    row_count = sum(_erase_rows(connection, each, erased) for each in done)
    again = [each for each in views.segments_of_thread(connection, thread) if now_gone & set(each.covered)]
    _write_again(connection, thread, again, {each.compaction_id: each for each in done}, count, count_message)
    rows.forget_analyses(connection, thread)
    replies.forget_replies(connection, [each.compaction_id for each in done])
    return ErasedCounts(
        messages=len(gone),
        rows=row_count,
        segments=len(again),
        promotions=erasures.erase_promotions(connection, thread, erased),
    )


def _messages_of(
    connection: Connection, thread: int, done: Sequence[Compaction], seqs: frozenset[int]
) -> dict[Position, Role]:
    """Every message that one of the entries brought or wrote anew, on any branch, and its neighbours in its entry."""
    placed: dict[Position, Role] = {}
    touched = set(seqs)
    for _, state in walk_heads(connection, thread, [_head_of(each) for each in done if each.ordinal]):
        for message_id, place in state.places.items():
            placed[Position(place.seq, place.ordinal)] = Role(state.by_id[message_id].type)
            if place.written_seq in seqs:
                touched.add(place.seq)
    return {position: role for position, role in placed.items() if position.seq in touched}


def _head_of(done: Compaction) -> Head:
    return Head(done.branch, done.head_seq)


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
            .values(
                totals=msgspec.json.encode(totals_of(after)),
                critical_dropped=dropped_in(after).critical_count,
            )
        )
    return len(changed)


def _write_again(
    connection: Connection,
    thread: int,
    segments: Iterable[Segment],
    by_id: Mapping[str, Compaction],
    count: TokenCounter,
    count_message: MessageCounter,
) -> None:
    """Each from the messages as they were when it was made."""
    at: dict[Head, list[Segment]] = {}
    for segment in segments:
        at.setdefault(_head_of(by_id[segment.compaction_id]), []).append(segment)
    if not at:
        return
    erased = views.erased_in(connection, thread)
    for head, state in walk_heads(connection, thread, at):
        waiting = at.pop(head, [])
        entries = entries_of(state, erased, count_message) if waiting else []
        for segment in waiting:
            done, covered = by_id[segment.compaction_id], set(segment.covered)
            source = [entry for entry in entries if entry.seq in covered]
            left = [row for row in rows.read_rows(connection, done.compaction_id) if row.status is not Status.ERASED]
            views.put_segment(connection, written_again(segment, source, left, Analyses(), done.policy, count))
