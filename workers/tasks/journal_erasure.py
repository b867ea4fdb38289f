"""Erasure in journals, on memory's behalf: the messages that its statements were read in, and all that repeats them.

Memory asks before it loses anything itself: while it still holds the words, a job that dies is begun again and finds
them. What runs recall in between is caught by a last look.
"""

import asyncio
import re
from collections.abc import Collection, Iterable, Sequence
from functools import partial

from threadmark.compaction import CompactionService, remove_thread_rows
from threadmark.memory import ErasureManifest, Origin, quote_hash
from threadmark.state import (
    Database,
    clear_copies,
    finish_deletions,
    read_lines,
    unfinished_copies,
    unfinished_deletions,
)
from threadmark.state.threads.erasure import (
    RowPlace,
    erase_in_rows,
    erase_in_thread,
    find_thread_numbers,
    holders,
    threads_telling,
    told_by,
)
from threadmark.workers.tasks.erased_json import Erased, QuotedSpan

__all__ = ["JournalCopies", "JournalErasure"]

#: How long the last look waits for runs that may still hold what was erased.
HELD_S_MAX = 20.0
POLL_S = 0.1
PAGE_COUNT = 200
DELETION_COUNT = 100
SEQ_MAX = 2**62
_ID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class JournalCopies:
    """The journals of the state database, as memory's `ExternalCopies`."""

    def __init__(self, database: Database, compaction: CompactionService | None = None) -> None:
        self._database = database
        self._compaction = compaction

    def erasure(self, tenant_id: str) -> "JournalErasure":
        """Begin to erase in the journals of a tenant."""
        return JournalErasure(self._database, tenant_id, self._compaction)


class JournalErasure:
    """The journals of a tenant, and what they have lost so far."""

    def __init__(self, database: Database, tenant_id: str, compaction: CompactionService | None = None) -> None:
        self._database = database
        self._tenant_id = tenant_id
        self._compaction = compaction
        self._done: dict[int, Erased] = {}
        self._ids: set[str] = set()
        self._entry_count = 0
        self._row_count = 0

    async def erase(self, part: ErasureManifest) -> None:
        """Take the words of some memories out of every journal that has them."""
        self._ids.update(part.assertion_ids)
        spoken = Erased(memory_ids=part.assertion_ids, texts=part.texts, told_seqs=())
        moments: dict[str, list[Origin]] = {} if part.whole_thread is None else {part.whole_thread: []}
        for origin in part.origins:
            if origin.thread_ref is not None:
                moments.setdefault(origin.thread_ref, []).append(origin)
        for thread_id, origins in moments.items():
            there = Erased(
                message_ids={each.message_ref for each in origins if each.message_ref and each.char_from is None},
                seqs={each.seq for each in origins if each.seq and not each.message_ref and each.char_from is None},
                spans=_spans(origins),
                told_seqs=(),
                whole=thread_id == part.whole_thread,
            )
            for number in await self._numbers([thread_id]):
                await self._erase_thread(number, spoken.also(there))
        for number in await self._telling(part.assertion_ids):
            await self._erase_thread(number, spoken)

    async def finish(self, assertion_ids: Collection[str]) -> dict[str, int]:
        """Look again: a worker that holds such a thread may have read what is gone since. The counts."""
        self._ids.update(assertion_ids)
        for number in await self._telling(self._ids):
            self._done.setdefault(number, Erased(memory_ids=self._ids, told_seqs=()))
        held = await self._held(self._done)
        for _ in range(round(HELD_S_MAX / POLL_S)):
            if not held:
                break
            held = dict(held.items() & (await self._held(held)).items())
            await asyncio.sleep(POLL_S)
        for number, erased in list(self._done.items()):
            await self._erase_thread(number, erased.also(Erased(memory_ids=self._ids, told_seqs=())))
        # Words of a thread whose deletion was cut short are in no thread that is found.
        left = partial(unfinished_deletions, count_max=DELETION_COUNT, tenant_id=self._tenant_id)
        while deletions := await self._database.read(left):
            await finish_deletions(self._database, deletions, None if self._compaction is None else remove_thread_rows)
        await self._database.empty_log()
        return {"journal_entries": self._entry_count, "journal_rows": self._row_count}

    async def _erase_thread(self, number: int, erased: Erased) -> None:
        # A reply, a tool or a quotation repeats the lines of an erased message after it.
        words, told_seqs = await self._words_and_seqs(number, erased)
        erased = erased.also(Erased(texts=words, told_seqs=told_seqs))
        if number in self._done:
            erased = erased.also(self._done[number])
        self._done[number] = erased
        await self._erase_compacted(number, erased)
        after: int | None = 0
        while after is not None:
            step = await self._database.write(
                partial(erase_in_thread, thread=number, rewrite=erased, after_seq=after), thread=number
            )
            self._entry_count += step.entry_count
            after = step.after_seq
        # A process that makes one is refused, and reads the thread again.
        await clear_copies(self._database, partial(unfinished_copies, source=number))
        place: RowPlace | None = RowPlace(0, None)
        while place is not None:
            rows = partial(erase_in_rows, thread=number, rewrite=erased, after=place)
            erasing = await self._database.write(rows, thread=number)
            self._row_count += erasing.row_count
            place = erasing.after

    async def _erase_compacted(self, number: int, erased: Erased) -> None:
        """Ledgers, summaries and the outbox first: while the journal has the words, a second attempt finds them."""
        if self._compaction is None:
            return
        seqs = await self._database.read(partial(told_by, thread=number, rewrite=erased))
        if seqs:
            counts = await self._compaction.erase_by_number(number, seqs)
            self._row_count += counts.rows + counts.segments + counts.promotions

    async def _words_and_seqs(self, number: int, erased: Erased) -> tuple[list[str], set[int]]:
        """The words of the messages that go, and the entries of the runs that said or recalled what goes."""
        words: list[str] = []
        run_of: dict[int, str] = {}
        about: set[str] = set()
        after = 0
        while True:
            read = partial(read_lines, thread=number, after_seq=after, before_seq=SEQ_MAX, count_max=PAGE_COUNT)
            lines = await self._database.read(read)
            if not lines:
                return words, {seq for seq, run_id in run_of.items() if run_id in about}
            after = lines[-1].seq
            for line in lines:
                if line.payload is None:
                    continue
                words += erased.words_of(line.kind, line.seq, line.payload)
                if line.run_id is not None:
                    run_of[line.seq] = line.run_id
                    if erased.is_about(line.kind, line.seq, line.payload):
                        about.add(line.run_id)

    async def _telling(self, ids: Collection[str]) -> list[int]:
        """The threads whose runs recalled one of these memories."""
        wanted = {each.encode() for each in ids}
        if not wanted:
            return []

        def tells(payload: bytes) -> bool:
            return not wanted.isdisjoint(_ID.findall(payload))

        return await self._database.read(partial(threads_telling, tenant_id=self._tenant_id, tells=tells))

    async def _held(self, numbers: Iterable[int]) -> dict[int, int]:
        return await self._database.read(partial(holders, threads=list(numbers)))

    async def _numbers(self, thread_ids: Sequence[str]) -> list[int]:
        found = partial(find_thread_numbers, tenant_id=self._tenant_id, thread_ids=thread_ids)
        return await self._database.read(found)


def _spans(origins: Iterable[Origin]) -> dict[str | int, set[QuotedSpan]]:
    """The parts of messages that sources name, by the message or else by its entry."""
    spans: dict[str | int, set[QuotedSpan]] = {}
    for each in origins:
        key = each.message_ref or each.seq
        if key is not None and each.char_from is not None and each.char_to is not None:
            digest = each.content_hash if each.quote is None else quote_hash(each.quote)
            spans.setdefault(key, set()).add(QuotedSpan(each.char_from, each.char_to, digest))
    return spans
