"""Recalls of dropped units: noted, listed, and those that come again and again suggested as pins."""

from collections.abc import Callable, Iterable
from datetime import datetime

import msgspec
from sqlalchemy import Connection

from threadmark.compaction.input.source import Position
from threadmark.compaction.ledger import Source
from threadmark.compaction.loading.thread_loader import Loaded, MessageCounter, load_thread
from threadmark.compaction.model.records import Drop
from threadmark.compaction.store import ledger_rows, recalls
from threadmark.compaction.view import Pin
from threadmark.compaction.view.items import live_seqs
from threadmark.state import Database, FoldCache, get_thread, to_us

__all__ = ["PinSuggestion", "Recalls"]

#: Needed twice, it will be needed again.
RECALL_COUNT_MIN = 2
SUGGESTION_COUNT_MAX = 50


class PinSuggestion(msgspec.Struct, frozen=True, kw_only=True):
    """A dropped unit that was asked for again and again, with its words and the span that a pin of it would show."""

    drop: Drop
    text: str
    span: Source
    recall_count: int
    last_recalled_at_us: int


class Recalls:
    """The verbs over recalls. A tenant's ids do not exist for another tenant (NotFound)."""

    def __init__(
        self,
        database: Database,
        count_message: MessageCounter,
        now: Callable[[], datetime],
        fold_cache: FoldCache | None = None,
    ) -> None:
        self._database, self._count_message, self._now, self._fold_cache = database, count_message, now, fold_cache

    async def note(
        self, tenant_id: str, thread_id: str, drop_ids: Iterable[str], how: recalls.How, *, requested_by: str, key: str
    ) -> None:
        """Record a request for these drops of the thread, once for each `key`. Raises NotFound."""
        wanted, now_us = sorted(set(drop_ids)), to_us(self._now())

        def unit(connection: Connection) -> None:
            thread = get_thread(connection, tenant_id, thread_id).number
            for drop_id in wanted:
                recalls.add_recall(connection, f"{key}/{drop_id}", thread, drop_id, how, requested_by, now_us)

        if wanted:
            await self._database.write(unit, repeatable=True)

    async def of_thread(
        self, tenant_id: str, thread_id: str, *, before: tuple[int, str] | None = None, count_max: int = 50
    ) -> list[recalls.DropRecall]:
        """Who asked for what in the thread, newest first; `before` is the place where the last page ended.

        Raises NotFound.
        """

        def query(connection: Connection) -> list[recalls.DropRecall]:
            thread = get_thread(connection, tenant_id, thread_id)
            return recalls.list_recalls(connection, thread.number, before=before, count_max=count_max)

        return await self._database.read(query)

    async def suggestions(self, tenant_id: str, thread_id: str) -> list[PinSuggestion]:
        """What would be worth a pin: asked for at least RECALL_COUNT_MIN times, and not in the view as it was said.

        The most wanted first, at most SUGGESTION_COUNT_MAX. Raises NotFound.
        """

        def query(connection: Connection) -> list[PinSuggestion]:
            loaded = load_thread(connection, tenant_id, thread_id, self._count_message, self._fold_cache)
            often = recalls.recalled_often(connection, loaded.thread.number, RECALL_COUNT_MIN, SUGGESTION_COUNT_MAX)
            made = (
                _suggestion(loaded, ledger_rows.find_drop(connection, tenant_id, drop_id), count, last_us)
                for drop_id, count, last_us in often
            )
            return [each for each in made if each is not None]

        return await self._database.read(query)


def _suggestion(loaded: Loaded, drop: Drop | None, count: int, last_us: int) -> PinSuggestion | None:
    if drop is None or not drop.row.sources:
        return None
    span = drop.row.sources[0]
    view = loaded.view.view
    entry = loaded.by_position().get(Position(span.seq, span.message))
    pin = Pin(span.seq, span.part, span.start, span.end, span.message)
    if entry is None or entry.erased or pin in view.items or span.seq in live_seqs(view, loaded.thread.head_seq):
        return None
    return PinSuggestion(
        drop=drop,
        text=entry.text_of(span.part)[span.start : span.end],
        span=span,
        recall_count=count,
        last_recalled_at_us=last_us,
    )
