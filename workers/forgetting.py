"""Erasure across the two stores: memory first tells what goes, then journals lose it, then memory itself.

The order matters. While memory still holds the words, a job that dies is begun again and finds them; what runs recall
in between is caught by a last look, by the ids that are gone.
"""

import asyncio
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from memory import Erasure, Forget, Origin, Recollection
from state import Database, read_lines
from state.erasure import erase_in_rows, erase_in_thread, find_thread_numbers, holders, threads_telling
from workers.erased import Erased

__all__ = ["forget"]

#: How long the last look waits for runs that may still hold what was erased.
HELD_S_MAX = 50.0
POLL_S = 0.1
PAGE_COUNT = 200
SEQ_MAX = 2**62
_ID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


async def forget(database: Database, memory: Recollection, what: Forget, *, tenant_id: str, now: datetime) -> Erasure:
    """Erase what a selector names from journals and from memory; the counts are those of both.

    Journals lose the messages that the statements were read in, every repetition of their words in those threads and
    in all that recalled them, and keep their chains. It can be begun again at any time.
    """
    journals = _Journals(database, tenant_id)
    after: str | None = ""
    while after is not None:
        part = await memory.traces(what, tenant_id=tenant_id, after=after)
        await journals.erase(part.assertion_ids, part.texts, part.origins, _whole_thread(what))
        after = part.after
    done = await memory.erase(what, tenant_id=tenant_id, now=now)
    await journals.look_again()
    await database.empty_log()
    return replace(done, counts=done.counts | journals.counts)


def _whole_thread(what: Forget) -> str | None:
    """The thread that is to lose every word; None where single messages are named."""
    parts = {} if what.source is None else what.source.parts()
    return str(parts["thread_ref"]) if parts.keys() == {"thread_ref"} else None


class _Journals:
    """The journals of a tenant, and what they have lost so far."""

    def __init__(self, database: Database, tenant_id: str) -> None:
        self._database = database
        self._tenant_id = tenant_id
        self._done: dict[int, Erased] = {}
        self._ids: set[str] = set()
        self._entry_count = 0
        self._row_count = 0

    @property
    def counts(self) -> dict[str, int]:
        """Entries and rows of the state database that lost something."""
        return {"journal_entries": self._entry_count, "journal_rows": self._row_count}

    async def erase(
        self, ids: Iterable[str], texts: Iterable[str], origins: Sequence[Origin], whole: str | None
    ) -> None:
        """Take the words of some memories out of every journal that has them."""
        known = list(ids)
        self._ids.update(known)
        by_thread: dict[str, list[Origin]] = {} if whole is None else {whole: []}
        for origin in origins:
            if origin.thread_ref is not None:
                by_thread.setdefault(origin.thread_ref, []).append(origin)
        spoken = set(texts)
        for thread_id, moments in by_thread.items():
            message_ids = {each.message_ref for each in moments if each.message_ref is not None}
            for number in await self._numbers([thread_id]):
                erased = Erased(
                    memory_ids=known,
                    texts=spoken,
                    message_ids=message_ids,
                    seqs={each.seq for each in moments if each.seq is not None and each.message_ref is None},
                    whole=thread_id == whole,
                )
                await self._erase_thread(number, erased)
        for number in await self._telling(known):
            await self._erase_thread(number, Erased(memory_ids=known, texts=spoken))

    async def look_again(self) -> None:
        """Once more, for what was on its way: a worker that holds such a thread may have read what is gone since."""
        for number in await self._telling(self._ids):
            self._done.setdefault(number, Erased(memory_ids=self._ids))
        held = await self._held(self._done)
        for _ in range(round(HELD_S_MAX / POLL_S)):
            if not held:
                break
            held = dict(held.items() & (await self._held(held)).items())
            await asyncio.sleep(POLL_S)
        for number, erased in list(self._done.items()):
            await self._erase_thread(number, erased)

    async def _erase_thread(self, number: int, erased: Erased) -> None:
        # The lines of a message that goes are repeated behind it: by the reply, by a tool, by whoever quotes them.
        erased = erased.also(Erased(texts=await self._words(number, erased)))
        if number in self._done:
            erased = erased.also(self._done[number])
        self._done[number] = erased
        after: int | None = 0
        while after is not None:
            step = await self._database.write(
                partial(erase_in_thread, thread=number, rewrite=erased, after_seq=after), thread=number
            )
            self._entry_count += step.entry_count
            after = step.after_seq
        rows = partial(erase_in_rows, thread=number, rewrite=erased)
        self._row_count += await self._database.write(rows, thread=number)

    async def _words(self, number: int, erased: Erased) -> list[str]:
        words: list[str] = []
        after = 0
        while True:
            read = partial(read_lines, thread=number, after_seq=after, before_seq=SEQ_MAX, count_max=PAGE_COUNT)
            lines = await self._database.read(read)
            if not lines:
                return words
            after = lines[-1].seq
            for line in lines:
                words += [] if line.payload is None else erased.words_of(line.kind, line.seq, line.payload)

    async def _telling(self, ids: Collection[str]) -> list[int]:
        """The threads whose runs were told one of these memories."""
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
