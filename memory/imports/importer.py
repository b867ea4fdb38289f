"""An import from first to last line: staged in small transactions, between which others write, then published."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection

from threadmark.memory.errors import Refused, Unavailable
from threadmark.memory.exports.spooled_lines import SpooledLines
from threadmark.memory.imports.discarding import discard, leftovers, remove_some
from threadmark.memory.imports.lines import number_of_assertion, numbered, read_some
from threadmark.memory.imports.publishing import Contested, ErasuresFirst, lose_erased, publish, queue_some
from threadmark.memory.imports.staging import ABANDONED_AFTER_US, Staged, begin, stage
from threadmark.memory.model.instants import to_us
from threadmark.memory.model.scope import Scope
from threadmark.memory.pools import IMPORTS
from threadmark.memory.store.database import Database
from threadmark.memory.store.import_tables import ImportStatus
from threadmark.memory.store.receipts import Receipt, refuse_answered, write_once

__all__ = ["Imported", "Importer", "Lines"]

#: Lines of one transaction: fewer where it takes longer than BATCH_S (seconds), for so long others wait for it.
LINE_COUNT_MIN, LINE_COUNT_MAX, BATCH_S = 25, 400, 0.03
_LOG = logging.getLogger("threadmark.memory")
T = TypeVar("T")
Lines = Collection[str] | SpooledLines


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import did, by kind of line."""

    added: Mapping[str, int]
    known: Mapping[str, int]  #: held already; left as they are
    erased: int  #: ids with a tombstone: they do not come back


class Importer:
    """Imports into one database; `wake` has the index brought up to date."""

    def __init__(self, database: Database, clock: Callable[[], datetime], wake: Callable[[], None]) -> None:
        self._database, self._clock, self._wake = database, clock, wake

    async def import_(self, lines: Lines, scope: Scope, receipt: Receipt[Imported] | None = None) -> Imported:
        """Keep the rows of an export under the scope's tenant, as they were, times and all; all of them or none.

        Raises Refused with the number of the line, ImportUnderWay and Unavailable, and then nothing is kept; with a
        `receipt` also what `write_once` raises.
        """
        await refuse_answered(self._database, scope.tenant_id, receipt, self._now())
        rest = await self._aside(partial(numbered, lines))
        job = await self._begun(scope.tenant_id)
        try:
            staged = await self._staged(job, rest, scope)
            done = Imported(added=staged.added, known=staged.known, erased=staged.erased)
            await self._published(job, done, scope.tenant_id, lines, receipt)
        except BaseException:
            # Without its database, or cancelled once more, the next sweep removes it.
            with suppress(Unavailable):
                await self._removed(job)
            raise
        await self._queued(job)
        return done

    async def resume(self) -> None:
        """Finish abandoned imports: remove those that were given up, index those that were published."""
        before = self._now() - ABANDONED_AFTER_US
        for job, status in await self._database.read(partial(leftovers, before=before)):
            if status == ImportStatus.PUBLISHED:
                await self._queued(job)
            else:
                _LOG.info("removing an import that was given up")
                await self._removed(job)

    async def _begun(self, tenant_id: str) -> int:
        while True:
            begun = await self._database.write(partial(begin, tenant_id=tenant_id, now=self._now()))
            if not begun.is_leftover:
                return begun.number
            await self._removed(begun.number)

    async def _staged(self, job: int, rest: Iterator[tuple[int, str]], scope: Scope) -> Staged:
        total = Staged(added=Counter(), known=Counter())
        count = LINE_COUNT_MIN
        while lines := await self._aside(partial(read_some, rest, scope, count)):
            began_s = time.monotonic()
            done = await self._database.write(partial(stage, job=job, scope=scope, lines=lines, now=self._now()))
            took_s = time.monotonic() - began_s
            count = max(LINE_COUNT_MIN, count // 2) if took_s > BATCH_S else min(LINE_COUNT_MAX, count * 2)
            total.added += done.added
            total.known += done.known
            total.erased += done.erased
        return total

    async def _published(
        self, job: int, done: Imported, tenant_id: str, lines: Lines, receipt: Receipt[Imported] | None
    ) -> None:
        def unit(connection: Connection) -> Imported:
            publish(connection, job, tenant_id)
            return done

        has_lost = await self._lost(job, tenant_id)
        while True:
            try:
                await write_once(self._database, unit, tenant_id=tenant_id, receipt=receipt, now=self._now())
            except ErasuresFirst:
                has_lost |= await self._lost(job, tenant_id)
            except Contested as error:
                number = await self._aside(partial(number_of_assertion, lines, error.assertion_id))
                why = "contradicts another write that was made during the import"
                raise Refused(f"line {number}", why) from error
            else:
                break
        if has_lost:
            await self._database.checkpoint()

    async def _lost(self, job: int, tenant_id: str) -> bool:
        """Lose what was erased meanwhile; whether there were erasures."""
        after, has_lost = 0, False
        while True:
            unit = partial(lose_erased, job=job, tenant_id=tenant_id, after=after, now=self._now())
            if (last := await self._database.write(unit)) is None:
                return has_lost
            after, has_lost = last, True

    async def _queued(self, job: int) -> None:
        while await self._database.write(partial(queue_some, job=job)):
            self._wake()

    async def _removed(self, job: int) -> None:
        if await self._database.write(partial(discard, job=job)):
            while await self._database.write(partial(remove_some, job=job)):
                continue

    async def _aside(self, work: Callable[[], T]) -> T:
        return await IMPORTS.run(work)

    def _now(self) -> int:
        return to_us(self._clock())
