"""The log of recalls on its way to the database: a bounded queue, so that an answer never waits for a writer."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import islice

from threadmark.memory.background_task import BackgroundTask
from threadmark.memory.errors import Unavailable
from threadmark.memory.model.question import Answers
from threadmark.memory.recall.recall_log import Access, access_of, of_run, record_all, row_of
from threadmark.memory.store.database import Database

__all__ = ["RecallLogQueue"]

QUEUE_COUNT_MAX = 10_000
#: Rows of one transaction.
FLUSH_COUNT = 100
#: The pause after a flush that failed, where no supervisor makes it.
RETRY_S = 0.5
_LOG = logging.getLogger("threadmark.memory")


class RecallLogQueue:
    """Takes recalls without waiting and writes them in the background, in order.

    A supervisor runs `run`; where none has, the first recall starts a background task of the queue's own.
    A process that is killed loses what is queued (what a run recalled stands in its journal too). A full queue drops
    the recall and counts it in `dropped_count`.
    """

    def __init__(self, database: Database, *, count_max: int = QUEUE_COUNT_MAX) -> None:
        self._database = database
        self._count_max = count_max
        self._queue: deque[dict[str, object]] = deque()
        self._woken = asyncio.Event()
        self._is_supervised = False
        self._own = BackgroundTask("the log of recalls", self._written, self._rest)
        self._one_flush = asyncio.Lock()
        self.dropped_count = 0

    def __len__(self) -> int:
        """Recalls that are not in the database yet."""
        return len(self._queue)

    def add(self, answers: Answers) -> None:
        """Queue a recall. It never waits and never raises."""
        if len(self._queue) >= self._count_max:
            self._drop(1, "the queue is full")
            return
        self._queue.append(row_of(answers))
        self._woken.set()
        if not self._is_supervised:
            self._own.start()

    async def of_run(self, run_ref: str, *, tenant_id: str) -> list[Access]:
        """The recalls of a run in the order of their answers: those in the database, then those still queued."""
        queued = [row for row in self._queue if row["tenant_id"] == tenant_id and row["run_ref"] == run_ref]
        kept = await self._database.read(partial(of_run, tenant_id=tenant_id, run_ref=run_ref))
        ids = {each.recall_id for each in kept}
        return kept + [access_of(row) for row in queued if row["recall_id"] not in ids]

    async def flush(self) -> None:
        """Write everything that is queued. Raises Unavailable with the rest still queued."""
        async with self._one_flush:
            while self._queue:
                batch = list(islice(self._queue, FLUSH_COUNT))
                try:
                    await self._database.write(partial(record_all, batch=batch))
                except Unavailable:
                    raise
                except Exception:
                    # A row that the database will not have must not stand before all that follow.
                    _LOG.exception("recalls could not be logged")
                    self._drop(len(batch), "the database refused them")
                for _ in batch:
                    self._queue.popleft()

    async def close(self) -> None:
        """Write what is queued, as far as the database takes it, and end the background."""
        await self._own.stop()
        try:
            await self.flush()
        except Unavailable:
            self._drop(len(self._queue), "the database did not answer at the stop")

    async def run(self, completed: Callable[[], None]) -> None:
        """Write whatever is queued, until cancelled; `completed` is called after each round.

        Raises Unavailable with the rest still queued. It can be run again.
        """
        self._is_supervised = True
        await self._own.stop()
        await self._written(completed)

    async def _written(self, completed: Callable[[], None]) -> None:
        while True:
            self._woken.clear()
            await self.flush()
            completed()
            await self._woken.wait()

    async def _rest(self) -> None:
        await asyncio.sleep(RETRY_S)

    def _drop(self, count: int, why: str) -> None:
        if count and not self.dropped_count:
            _LOG.warning("recalls are dropped from their log: %s", why)
        self.dropped_count += count
