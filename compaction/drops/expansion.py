"""The entries behind a summary, word for word. Read only: the view stays what it is."""

import msgspec
from sqlalchemy import Connection

from threadmark.compaction.input.source import SourceEntry
from threadmark.compaction.loading.thread_loader import MessageCounter, entries_as_of
from threadmark.compaction.store import orders, views
from threadmark.compaction.view import Segment
from threadmark.state import Database, NotFound, get_thread

__all__ = ["Expanded", "Segments"]


class Expanded(msgspec.Struct, frozen=True, kw_only=True):
    """The first messages that a summary covers, whole ones within the budget, as they were when it was made.

    `next_seq` is the entry to go on with; None: these are all.
    """

    segment: Segment
    entries: tuple[SourceEntry, ...]
    tokens: int
    next_seq: int | None


class Segments:
    """The verbs over summaries; all of them read only. A tenant's ids do not exist for another one (NotFound)."""

    def __init__(self, database: Database, count_message: MessageCounter) -> None:
        self._database, self._count_message = database, count_message

    async def expand(
        self, tenant_id: str, thread_id: str, segment_id: str, *, budget_tokens: int, from_seq: int = 0
    ) -> Expanded:
        """The covered entries from `from_seq` on; a first message that is larger than the budget comes all the same.

        Raises NotFound, also for the segment of another thread.
        """
        segment, entries = await self._database.read(
            lambda connection: self._covered(connection, tenant_id, thread_id, segment_id)
        )
        chosen: list[SourceEntry] = []
        tokens = 0
        for entry in entries:
            if entry.seq < from_seq:
                continue
            # Messages of one entry go together: the next page begins with an entry.
            is_begun = bool(chosen) and entry.seq != chosen[-1].seq
            if is_begun and tokens + entry.tokens > budget_tokens:
                return Expanded(segment=segment, entries=tuple(chosen), tokens=tokens, next_seq=entry.seq)
            chosen.append(entry)
            tokens += entry.tokens
        return Expanded(segment=segment, entries=tuple(chosen), tokens=tokens, next_seq=None)

    def _covered(
        self, connection: Connection, tenant_id: str, thread_id: str, segment_id: str
    ) -> tuple[Segment, list[SourceEntry]]:
        thread = get_thread(connection, tenant_id, thread_id)
        segments, _ = views.read_segments(connection, thread.number, [segment_id])
        segment = segments.get(segment_id)
        done = None if segment is None else orders.find_compaction(connection, segment.compaction_id, tenant_id)
        if segment is None or done is None:
            raise NotFound("Segment", segment_id)
        covered = frozenset(segment.covered)
        then = entries_as_of(connection, thread.number, done.branch, done.head_seq, self._count_message)
        return segment, [entry for entry in then if entry.seq in covered]
