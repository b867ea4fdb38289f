"""Performing an erasure from its job: outside copies, the rows in batches, the index, the write-ahead log."""

import logging
from contextlib import suppress
from datetime import datetime
from functools import partial

from threadmark.memory.erase import erasure_jobs
from threadmark.memory.erase.external_copies import ExternalCopies, erase_copies, erase_late_copies
from threadmark.memory.erase.forget import Erasure, Forget
from threadmark.memory.erase.leftovers import remove_leftovers
from threadmark.memory.errors import IndexUnavailable, Unavailable
from threadmark.memory.index.indexer import Indexer
from threadmark.memory.model.instants import to_us
from threadmark.memory.recall.recall_log import forget_before
from threadmark.memory.recall.recall_log_queue import RecallLogQueue
from threadmark.memory.store.database import Database
from threadmark.memory.store.receipts import forget_expired

__all__ = ["ErasureRunner"]

_LOG = logging.getLogger("threadmark.memory")


class ErasureRunner:
    """Performs erasures that are noted in the database, each from wherever it was interrupted; sweeps what is old."""

    def __init__(
        self, database: Database, indexer: Indexer, recall_log: RecallLogQueue, copies: ExternalCopies | None
    ) -> None:
        self._database, self._indexer = database, indexer
        self._recall_log, self._copies = recall_log, copies

    async def perform(self, erasure_id: str, *, tenant_id: str, now: int) -> Erasure:
        """Go on with an erasure; `now` in microseconds. Done already, it is reported again.

        When the index does not answer, or a reader holds SQLite's log, the database is erased all the same and the job
        stays open.
        """
        job = {"tenant_id": tenant_id, "erasure_id": erasure_id}
        outside = await erase_copies(self._database, self._copies, **job) if self._copies else None
        batch = partial(erasure_jobs.erase_batch, tenant_id=tenant_id, erasure_id=erasure_id, now=now)
        erased = True
        while erased:
            erased = bool(await self._database.write(batch))
        if outside is not None:
            await erase_late_copies(self._database, outside, **job)
        try:
            await self._indexer.drain()
        except IndexUnavailable:
            _LOG.warning("an erasure waits for the index", exc_info=True)
            return await self._database.read(partial(erasure_jobs.job, tenant_id=tenant_id, erasure_id=erasure_id))
        # What was asked before the end of the erasure and is not written yet may repeat what is erased.
        await self._recall_log.flush()
        await remove_leftovers(self._database, tenant_id, erasure_id)
        try:
            # Before the job is done: a log that a reader still holds contains what was erased.
            await self._database.checkpoint()
        except Unavailable:
            _LOG.warning("an erasure waits for readers of the log", exc_info=True)
            return await self._database.read(partial(erasure_jobs.job, tenant_id=tenant_id, erasure_id=erasure_id))
        done = await self._database.write(
            partial(erasure_jobs.finish, tenant_id=tenant_id, erasure_id=erasure_id, now=now)
        )
        with suppress(Unavailable):
            # The job's selector may be a name; if the log is being read now, the hourly retention empties it.
            await self._database.checkpoint()
        return done

    async def sweep(self, *, now: datetime, recalls_before: datetime) -> int:
        """Erase what has expired, and forget old recalls and receipts, off the disk too; how many assertions."""
        instant, count = to_us(now), 0
        for tenant_id in await self._database.read(partial(erasure_jobs.tenants_with_expired, now=instant)):
            expired = partial(erasure_jobs.begin, tenant_id=tenant_id, what=Forget(expired_by=now), now=instant)
            begun = await self._database.write(expired)
            swept = await self.perform(begun.erasure_id, tenant_id=tenant_id, now=instant)
            count += swept.counts.get("assertions", 0)
        while await self._database.write(partial(forget_before, instant=recalls_before)):
            continue
        while await self._database.write(partial(forget_expired, now=instant)):
            continue
        await self._database.checkpoint()
        return count
