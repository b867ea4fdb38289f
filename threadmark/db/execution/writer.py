"""One thread that owns one connection and commits for all callers: group commit without a timer.

It takes whatever is queued, applies it in one transaction, commits, and resolves all waiters. A lone write is committed
at once; while a commit is in progress, the next batch collects by itself.
"""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, Engine, text

from threadmark.db.conditions import Condition, condition_of
from threadmark.db.errors import DatabaseAway, DatabaseClosed, OutcomeUnknown
from threadmark.db.execution.pools import Pool
from threadmark.db.execution.queued_write import Batched, QueuedWrite, Unit, answer
from threadmark.db.execution.transactions import Attempt, Batching, Transactions
from threadmark.db.limits import DEFAULT_LIMITS
from threadmark.db.outage import away, is_away, is_passing
from threadmark.db.postgresql import allow_until

__all__ = ["BATCH_COUNT_MAX", "Writer"]

BATCH_COUNT_MAX = 256
RECONNECT_DELAY_S = 0.05
HURRY_S = 0.5
#: How often an idle writer whose last write failed checks whether the database is back (seconds).
PROBE_S = 0.5
#: The minimum time for an attempt that began just before its deadline (seconds).
ATTEMPT_S_MIN = 2.0
#: A write that met another process's sees its result when it is tried again; after so many attempts it has failed.
CONFLICT_ATTEMPT_MAX = 8
_LOG = logging.getLogger("threadmark.db")


def _never(_: Exception) -> bool:
    return False


class Writer:
    """Applies writes in the order in which they were queued, many per commit.

    A write waits for at most `wait_s` seconds: for its turn, and while the database is away, busy or crowded. An
    attempt that has begun then continues for as long as its connection allows.

    `database` names it in errors. `batching` writes the works that are no units. With `savepoints`, a unit that raises
    fails alone and the others of its batch are not written again, for two statements more a unit. `is_conflict` says
    which errors of the driver mean that the same unit may succeed at once when it is tried again.
    """

    def __init__(
        self,
        engine: Engine,
        name: str,
        *,
        wait_s: float = DEFAULT_LIMITS.request_s,
        database: str = "state",
        batching: Batching | None = None,
        savepoints: bool = False,
        is_conflict: Callable[[Exception], bool] = _never,
    ) -> None:
        self._engine = engine
        self._wait_s = wait_s
        self._away = partial(DatabaseAway, database=database)
        self._away_by = partial(away, database=database)
        self._transactions = Transactions(batching, savepoints=savepoints)
        self._is_conflict = is_conflict
        self._queue: queue.SimpleQueue[QueuedWrite | None] = queue.SimpleQueue()
        self._closed = False
        self._connection: Connection | None = None
        self._busy_since: float | None = None
        self._failing_since: float | None = None
        self._hurried_at: float | None = None
        self.condition: Condition | None = None
        self.commit_count = 0
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    @property
    def stalled_s(self) -> float:
        """For how long this writer has failed to commit (seconds); 0 while it is idle or healthy."""
        since = [each for each in (self._busy_since, self._failing_since) if each is not None]
        return time.monotonic() - min(since) if since else 0.0

    async def submit(self, work: Unit | Batched, *, thread: int | None = None, repeatable: bool) -> Any:
        """The result of `work`, after its commit. `thread` is the thread that a unit writes, if order matters.

        A unit that raises is rolled back alone and raises here. If the caller is cancelled before its write began,
        nothing is written; if later, the caller first waits for the commit in progress. Raises OutcomeUnknown when the
        connection was lost during the commit of work that is not repeatable, and DatabaseAway when the database did not
        respond in time or refuses work at present.
        """
        if self._closed:
            raise DatabaseClosed("the database is closed")
        item = QueuedWrite(work, asyncio.get_running_loop(), thread=thread, repeatable=repeatable, wait_s=self._wait_s)
        self._queue.put(item)
        waiting = item.loop.call_later(self._wait_s, self._give_up, item)
        try:
            return await item.future
        except asyncio.CancelledError:
            if not item.take():
                await item.answered()
            raise
        finally:
            waiting.cancel()

    def hurry(self) -> None:
        """The process is shutting down: from now on a write waits at most HURRY_S for an unavailable database."""
        self._hurried_at = self._hurried_at or time.monotonic()

    async def close(self) -> None:
        """Commit what is queued, then end the thread."""
        self._closed = True
        self.hurry()
        self._queue.put(None)
        joining = Pool("threadmark-join", 1)
        await joining.run(self._thread.join)
        joining.shutdown()

    def _give_up(self, item: QueuedWrite) -> None:
        """Refuse a write whose turn has not come; a write that has begun gets the result of its attempts."""
        if item.take() and not item.future.done():
            item.future.set_exception(self._away(self.condition or Condition.BUSY))

    def _serve(self) -> None:
        try:
            while True:
                batch, more = self._next_batch()
                if batch:
                    self._busy_since = time.monotonic()
                    self._commit(batch)
                    self._busy_since = None
                    answer(batch)
                if not more:
                    return
        finally:
            self._drop_connection()

    def _next_batch(self) -> tuple[list[QueuedWrite], bool]:
        item = self._next()
        batch: list[QueuedWrite] = []
        while item is not None:
            if item.take():
                batch.append(item)
            if len(batch) >= BATCH_COUNT_MAX:
                return batch, True
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, False

    def _next(self) -> QueuedWrite | None:
        """The next write; None if no more will come.

        After a failure, an idle writer probes until the database is back.
        """
        while self._failing_since is not None:
            try:
                return self._queue.get(timeout=PROBE_S)
            except queue.Empty:
                self._probe()
        return self._queue.get()

    def _probe(self) -> None:
        try:
            connection = self._connect([])
            with self._transactions.begin(connection) as transaction:
                connection.execute(text("SELECT 1"))
                transaction.rollback()
        except Exception as error:
            self._recover(error, Attempt())
        else:
            self._failing_since = None

    def _commit(self, batch: list[QueuedWrite]) -> None:
        attempt = Attempt()
        try:
            self._write(batch, attempt)
        except Exception as error:
            self._again(batch, error, unknown=self._recover(error, attempt) and attempt.is_committing)

    def _write(self, batch: Sequence[QueuedWrite], attempt: Attempt) -> None:
        self._transactions.commit(self._connect(batch), batch, attempt)
        self.commit_count += 1
        self.condition = self._failing_since = None

    def _again(self, batch: list[QueuedWrite], error: Exception, *, unknown: bool) -> None:
        """After a failure, retry every write alone, so that a bad one does not fail its neighbours."""
        for item in batch:
            item.result = item.error = None
        if unknown:
            for item in [each for each in batch if not each.repeatable]:
                item.error = OutcomeUnknown()
                item.error.__cause__ = error
                batch = [each for each in batch if each is not item]
        elif len(batch) == 1 and not (is_passing(error) or self._is_conflict(error)):
            batch[0].error = self._refusal(error)
            return
        trouble: Exception | None = None
        for item in batch:
            if trouble is not None and time.monotonic() > self._deadline(item):
                # Each attempt would wait for the same database, and the last write would wait for all attempts.
                item.error = self._away_by(trouble)
            else:
                trouble = self._alone(item)

    def _alone(self, item: QueuedWrite) -> Exception | None:
        """Try until the write succeeds, is refused, or runs out of time; returns the error that used up the time."""
        conflict_count = 0
        while True:
            attempt = Attempt()
            try:
                self._write([item], attempt)
            except Exception as error:
                lost = self._recover(error, attempt)
                if lost and attempt.is_committing and not item.repeatable:
                    item.error = OutcomeUnknown()
                    item.error.__cause__ = error
                    return error
                if self._is_conflict(error) and conflict_count < CONFLICT_ATTEMPT_MAX:
                    conflict_count += 1
                    continue
                if not is_passing(error):
                    item.error = self._refusal(error)
                    return None
                if time.monotonic() > self._deadline(item):
                    item.error = self._away_by(error)
                    return error
                time.sleep(RECONNECT_DELAY_S)
            else:
                return None

    def _connect(self, batch: Sequence[QueuedWrite]) -> Connection:
        if self._connection is None:
            self._connection = self._engine.connect()
        until = None
        if self._failing_since is not None:
            # A unit may take long while the database is well; after a failure, limit the wait for each.
            until = max(min(map(self._deadline, batch), default=0.0), time.monotonic() + ATTEMPT_S_MIN)
        allow_until(self._connection.connection.driver_connection, until)
        return self._connection

    def _deadline(self, item: QueuedWrite) -> float:
        return item.deadline if self._hurried_at is None else min(item.deadline, self._hurried_at + HURRY_S)

    def _recover(self, error: Exception, attempt: Attempt) -> bool:
        """Make the connection usable again, or drop it; returns whether it was lost."""
        condition = condition_of(error)
        if condition is not None:
            self.condition = condition
            self._failing_since = self._failing_since or self._busy_since
        connection = self._connection
        if connection is None:
            return False
        if not is_away(error) and not connection.invalidated:
            if attempt.is_committing or condition is Condition.READ_ONLY:
                # A refused commit leaves its transaction, and so the lock, open in the driver. Also, after a failover
                # that moves the address to the new primary, only a new connection reaches it.
                self._drop_connection()
                return False
            try:
                if connection.in_transaction():
                    connection.rollback()
            except Exception:
                _LOG.warning("rollback failed; taking a new connection", exc_info=True)
            else:
                return False
        self._drop_connection()
        return True

    def _refusal(self, error: Exception) -> Exception:
        """The error for callers: DatabaseAway with the database's condition, or the error itself."""
        return error if condition_of(error) is None else self._away_by(error)

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()
