"""Performing an erasure from its job: outside copies, the rows in batches, the index, the write-ahead log."""

import logging
from contextlib import suppress
from functools import partial

from threadmark.memory.erase import erasure_jobs
from threadmark.memory.erase.external_copies import ExternalCopies, erase_copies, erase_late_copies
from threadmark.memory.erase.forget import Erasure
from threadmark.memory.erase.leftovers import remove_leftovers
from threadmark.memory.errors import IndexUnavailable, Unavailable
from threadmark.memory.index.indexer import Indexer
from threadmark.memory.recall.recall_log_queue import RecallLogQueue
from threadmark.memory.store.database import Database

__all__ = ["ErasureRunner"]

_LOG = logging.getLogger("threadmark.memory")


class ErasureRunner:
    """Performs erasures that are noted in the database, each from wherever it was interrupted."""

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
