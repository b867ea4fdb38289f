"""What compactions took away: paged, searched, shown in its place, and exported row by row."""

from collections.abc import AsyncIterator, Collection, Iterable
from functools import partial

import msgspec
from sqlalchemy import Connection

from threadmark.compaction.atoms import AtomClass
from threadmark.compaction.content_words import content_words
from threadmark.compaction.drops.drop_search import DropQuery, Recalled, recall_dropped
from threadmark.compaction.input.analysis import analyse_text
from threadmark.compaction.input.source import Position, SourceEntry
from threadmark.compaction.ledger import RowKey, UnitKind
from threadmark.compaction.ledger.rows import row_id_of
from threadmark.compaction.loading.thread_loader import (
    Loaded,
    MessageCounter,
    entries_as_of,
    load_by_number,
    load_thread,
)
from threadmark.compaction.model.records import Drop, DropFilter
from threadmark.compaction.pools import RANKING
from threadmark.compaction.store import ledger_rows, orders
from threadmark.compaction.summary import TokenCounter
from threadmark.state import Database, FoldCache, NotFound
from threadmark.state.threads.thread_numbers import thread_numbers_of

__all__ = ["DropSource", "Drops", "FoundDrop"]

PAGE_COUNT_MAX = 500
#: Rows of a tenant that one search ranks, words that it looks for, threads that it opens.
CANDIDATE_COUNT_MAX, WORD_COUNT_MAX, THREAD_COUNT_MAX = 200, 6, 20


class FoundDrop(msgspec.Struct, frozen=True, kw_only=True):
    """An answer of a search: the drop's name, its thread, and the words as they stand in the journal."""

    drop_id: str
    compaction_id: str
    thread_id: str
    recalled: Recalled


class DropSource(msgspec.Struct, frozen=True, kw_only=True):
    """A drop with the messages that it comes from, and their neighbours; erased ones have no text."""

    drop: Drop
    thread_id: str
    entries: tuple[SourceEntry, ...]  #: those that say it
    around: tuple[SourceEntry, ...]  #: these and their neighbours, in the order of the thread


class Drops:
    """The verbs over drops; all of them read only. A tenant's ids do not exist for another tenant (NotFound)."""

    def __init__(
        self,
        database: Database,
        count: TokenCounter,
        count_message: MessageCounter,
        fold_cache: FoldCache | None = None,
    ) -> None:
        self._database, self._count, self._count_message, self._fold_cache = database, count, count_message, fold_cache

    async def page(
        self, tenant_id: str, compaction_id: str, chosen: DropFilter, *, after: int = -1, count_max: int = 50
    ) -> list[Drop]:
        """Drops of a compaction in the order of its ledger; `after` is the number of the last row of the page before.

        Raises NotFound.
        """

        def query(connection: Connection) -> list[Drop]:
            if orders.find_compaction(connection, compaction_id, tenant_id) is None:
                raise NotFound("Compaction", compaction_id)
            return ledger_rows.page_of_rows(connection, compaction_id, chosen, after=after, count_max=count_max)

        return await self._database.read(query)

    async def ledger(self, tenant_id: str, compaction_id: str) -> AsyncIterator[Drop]:
        """Every row of the ledger, in order, read page by page. Raises NotFound before the first."""
        everything = DropFilter(statuses=())
        after, more = -1, True
        while more:
            page = await self.page(tenant_id, compaction_id, everything, after=after, count_max=PAGE_COUNT_MAX)
            for drop in page:
                yield drop
            more = len(page) == PAGE_COUNT_MAX
            after = page[-1].number if page else after

    async def get(self, tenant_id: str, drop_id: str) -> Drop:
        """The drop. Raises NotFound."""
        found = await self._database.read(lambda connection: ledger_rows.find_drop(connection, tenant_id, drop_id))
        if found is None:
            raise NotFound("Drop", drop_id)
        return found

    async def source(self, tenant_id: str, drop_id: str, *, context: int = 2) -> DropSource:
        """Where a drop comes from, with `context` messages on each side, as they were when it was dropped.

        Raises NotFound.
        """
        drop = await self.get(tenant_id, drop_id)

        def query(connection: Connection) -> tuple[str, list[SourceEntry]]:
            done = orders.find_compaction(connection, drop.compaction_id, tenant_id)
            thread = thread_numbers_of(connection, drop.thread)
            if done is None or thread is None:
                raise NotFound("Drop", drop_id)
            entries = entries_as_of(connection, drop.thread, done.branch, done.head_seq, self._count_message)
            return thread.thread_id, entries

        thread_id, entries = await self._database.read(query)
        wanted = {Position(source.seq, source.message) for source in drop.row.sources}
        at = {number for number, entry in enumerate(entries) if entry.position in wanted}
        near = {number for each in at for number in range(each - context, each + context + 1)}
        return DropSource(
            drop=drop,
            thread_id=thread_id,
            entries=tuple(entries[number] for number in sorted(at)),
            around=tuple(entry for number, entry in enumerate(entries) if number in near),
        )

    async def search_thread(self, tenant_id: str, thread_id: str, query: DropQuery) -> list[FoundDrop]:
        """The best answers among what the thread's view does not show; of each unit the newest account counts.

        Raises NotFound.
        """

        def read(connection: Connection) -> tuple[Loaded, list[Drop]]:
            loaded = load_thread(connection, tenant_id, thread_id, self._count_message, self._fold_cache)
            return loaded, _newest(connection, loaded.view.ledgers)

        loaded, drops = await self._database.read(read)
        return await self._recalled(loaded, drops, query)

    async def search_tenant(self, tenant_id: str, query: DropQuery) -> list[FoundDrop]:
        """The best answers over all threads of the tenant: equal values first, then shared words.

        A question that is a unit as a whole (as it is written, case aside, its normal form, or a drop's id) is answered
        by indexes, and by such units alone where there are any. Every other one looks through the tenant's rows, and
        the newest that have one of its words are ranked, at most CANDIDATE_COUNT_MAX for each.
        """
        if query.text.strip():
            exact, asked = await self._database.read(lambda connection: _whole_units(connection, tenant_id, query))
            found = await self._ranked(exact, asked)
            if found:
                return found
        candidates = await self._database.read(lambda connection: _candidates(connection, tenant_id, query))
        return await self._ranked(candidates, query)

    async def _ranked(self, candidates: Iterable[Drop], query: DropQuery) -> list[FoundDrop]:
        by_thread: dict[int, list[Drop]] = {}
        for drop in candidates:
            by_thread.setdefault(drop.thread, []).append(drop)
        found: list[FoundDrop] = []
        for number in list(by_thread)[:THREAD_COUNT_MAX]:
            loaded = await self._database.read(
                lambda connection, number=number: load_by_number(  # type: ignore[misc]
                    connection, number, self._count_message, self._fold_cache
                )
            )
            in_effect = [drop for drop in by_thread[number] if drop.compaction_id in loaded.view.ledgers]
            found.extend(await self._recalled(loaded, in_effect, query))
        found.sort(key=lambda each: -each.recalled.score)
        return found[: query.limit]

    async def _recalled(self, loaded: Loaded, drops: Iterable[Drop], query: DropQuery) -> list[FoundDrop]:
        # Beside the event loop: a long thread has thousands of rows, and others wait for an answer too.
        return await RANKING.run(partial(self._rank, loaded, drops, query))

    def _rank(self, loaded: Loaded, drops: Iterable[Drop], query: DropQuery) -> list[FoundDrop]:
        by_row = {drop.row.row_id: drop for drop in drops}
        recalled = recall_dropped((drop.row for drop in by_row.values()), loaded.by_position(), query, self._count)
        return [
            FoundDrop(
                drop_id=by_row[each.row_id].drop_id,
                compaction_id=by_row[each.row_id].compaction_id,
                thread_id=loaded.thread.thread_id,
                recalled=each,
            )
            for each in recalled
        ]


def _newest(connection: Connection, compaction_ids: Iterable[str]) -> list[Drop]:
    """The rows of these ledgers, of each unit that of the newest compaction."""
    newest: dict[str, Drop] = {}
    for compaction_id in sorted(compaction_ids):
        everything = ledger_rows.page_of_rows(
            connection, compaction_id, DropFilter(statuses=()), after=-1, count_max=None
        )
        newest.update((drop.row.row_id, drop) for drop in everything)
    return list(newest.values())


def _candidates(connection: Connection, tenant_id: str, query: DropQuery) -> list[Drop]:
    words = sorted(content_words(query.text), key=lambda word: (-len(word), word))[:WORD_COUNT_MAX]
    texts = [query.text.strip(), *words]
    found: dict[str, Drop] = {}
    for text in dict.fromkeys(texts):
        chosen = _filter(query, text)
        drops = ledger_rows.rows_of_tenant(
            connection, tenant_id, chosen, _exact(query.text), count_max=CANDIDATE_COUNT_MAX
        )
        found.update((drop.drop_id, drop) for drop in drops)
    return list(found.values())


def _whole_units(connection: Connection, tenant_id: str, query: DropQuery) -> tuple[list[Drop], DropQuery]:
    """The units that the question is as a whole, and what then is asked of them."""
    text = query.text.strip()
    named = ledger_rows.find_drop(connection, tenant_id, text)
    if named is not None:
        return [named], msgspec.structs.replace(query, text="")
    written = {atom.canon for atom in analyse_text(text).atoms if text[atom.start : atom.end] == text}
    canons = {text, text.casefold(), *written}
    names = {row_id_of(RowKey(UnitKind.ATOM, cls, canon)) for cls in AtomClass for canon in canons}
    return ledger_rows.exact_rows(connection, tenant_id, _filter(query), text, names, CANDIDATE_COUNT_MAX), query


def _filter(query: DropQuery, text: str = "") -> DropFilter:
    return DropFilter(
        statuses=tuple(query.statuses),
        classes=tuple(query.classes),
        text=text,
        from_seq=query.from_seq,
        to_seq=query.to_seq,
    )


def _exact(text: str) -> Collection[str]:
    """The names of the rows that the values in a question have."""
    return {row_id_of(RowKey(UnitKind.ATOM, atom.cls, atom.canon)) for atom in analyse_text(text).atoms}
