"""One thread that owns one connection and commits for everybody: group commit without a timer.

It takes whatever is queued, applies it in one transaction, commits, and answers all waiters. When nothing is queued a
single write is committed at once; while a commit is on its way to the disk the next batch collects by itself.
"""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Engine, text

from threadmark.db import DEFAULT_LIMITS, Condition, allow_until, condition_of
from threadmark.state.append.append_batch import Append, Outcome, append_batch, begin_units, commit_appends
from threadmark.state.errors import DatabaseAway, DatabaseClosed, OutcomeUnknown
from threadmark.state.outage import away, is_away, is_passing
from threadmark.state.pools import Pool
from threadmark.state.queued_write import QueuedWrite, Unit, answer, groups

__all__ = ["BATCH_COUNT_MAX", "Writer"]

BATCH_COUNT_MAX = 256
RECONNECT_DELAY_S = 0.05
HURRY_S = 0.5
#: How often an idle writer whose last write failed looks whether the database is back (seconds).
PROBE_S = 0.5
#: What an attempt gets at least that began just before its deadline (seconds).
ATTEMPT_S_MIN = 2.0
_LOG = logging.getLogger("threadmark.state")


class Writer:
    """Applies writes in the order in which they were queued, many to a commit.

    A write waits for at most `wait_s` seconds: for its turn, and while the database is away, busy or crowded. An
    attempt that has begun then goes on for as long as its connection allows.
    """

    def __init__(self, engine: Engine, name: str, *, wait_s: float = DEFAULT_LIMITS.request_s) -> None:
        self._engine = engine
        self._wait_s = wait_s
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
        """For how long this writer has committed nothing although it should (seconds); 0 while it is idle or well."""
        since = [each for each in (self._busy_since, self._failing_since) if each is not None]
        return time.monotonic() - min(since) if since else 0.0

    async def submit(self, work: Unit | Append, *, thread: int | None = None, repeatable: bool) -> Any:
        """The result of `work`, after its commit. `thread` is the one that a unit writes, if it has to keep an order.

        A unit that raises is undone alone and raises here. A caller cancelled before its write began leaves nothing;
        one cancelled later waits for the commit that is on its way and is cancelled then. Raises OutcomeUnknown when
        the connection was lost during the commit of work that cannot be repeated, and DatabaseAway when the database
        could not do it in time, or said that it cannot do it now.
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
        """The process is about to end: a write waits for a database that is away no longer than HURRY_S from now on."""
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
        """Refuse a write whose turn has not come; one that has begun is answered by its attempts."""
        if item.take() and not item.future.done():
            item.future.set_exception(DatabaseAway(self.condition or Condition.BUSY))

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
        """The next write; None: no more will come. An idle writer that failed finds out by itself when that ends."""
        while self._failing_since is not None:
            try:
                return self._queue.get(timeout=PROBE_S)
            except queue.Empty:
                self._probe()
        return self._queue.get()

    def _probe(self) -> None:
        try:
            connection = self._connect([])
            with begin_units(connection) as transaction:
                connection.execute(text("SELECT 1"))
                transaction.rollback()
        except Exception as error:
            self._recover(error, committing=False)
        else:
            self._failing_since = None

    def _commit(self, batch: list[QueuedWrite]) -> None:
        committing = False
        try:
            connection = self._connect(batch)
            if all(isinstance(item.work, Append) for item in batch):
                committing = True
                _answer_appends(batch, commit_appends(connection, _appends(batch)))
            else:
                with begin_units(connection) as transaction:
                    for group in groups(batch):
                        _apply(connection, group)
                    committing = True
                    transaction.commit()
            self._succeeded()
        except Exception as error:
            self._again(batch, error, unknown=self._recover(error, committing=committing) and committing)

    def _again(self, batch: list[QueuedWrite], error: Exception, *, unknown: bool) -> None:
        """After a failure: every write again, alone, so that a bad one does not fail its neighbours."""
        for item in batch:
            item.result = item.error = None
        if unknown:
            for item in [each for each in batch if not each.repeatable]:
                item.error = OutcomeUnknown()
                item.error.__cause__ = error
                batch = [each for each in batch if each is not item]
        elif len(batch) == 1 and not is_passing(error):
            batch[0].error = _refusal(error)
            return
        trouble: Exception | None = None
        for item in batch:
            if trouble is not None and time.monotonic() > self._deadline(item):
                # Each attempt would wait for the same database, and the last of them for all of the others.
                item.error = away(trouble)
            else:
                trouble = self._alone(item)

    def _alone(self, item: QueuedWrite) -> Exception | None:
        """Try until it is done, refused, or too late; what made it too late."""
        while True:
            committing = False
            try:
                connection = self._connect([item])
                if isinstance(item.work, Append):
                    committing = True
                    (item.result,) = commit_appends(connection, [item.work])
                else:
                    with begin_units(connection) as transaction:
                        _apply(connection, [item])
                        committing = True
                        transaction.commit()
                self._succeeded()
            except Exception as error:
                lost = self._recover(error, committing=committing)
                if lost and committing and not item.repeatable:
                    item.error = OutcomeUnknown()
                    item.error.__cause__ = error
                    return error
                if not is_passing(error):
                    item.error = _refusal(error)
                    return None
                if time.monotonic() > self._deadline(item):
                    item.error = away(error)
                    return error
                time.sleep(RECONNECT_DELAY_S)
            else:
                return None

    def _connect(self, batch: Sequence[QueuedWrite]) -> Connection:
        if self._connection is None:
            self._connection = self._engine.connect()
        until = None
        if self._failing_since is not None:
            # A unit may be long while the database is well; of one that has just failed no wait is long.
            until = max(min(map(self._deadline, batch), default=0.0), time.monotonic() + ATTEMPT_S_MIN)
        allow_until(self._connection.connection.driver_connection, until)
        return self._connection

    def _deadline(self, item: QueuedWrite) -> float:
        return item.deadline if self._hurried_at is None else min(item.deadline, self._hurried_at + HURRY_S)

    def _succeeded(self) -> None:
        self.commit_count += 1
        self.condition = self._failing_since = None

    def _recover(self, error: Exception, *, committing: bool) -> bool:
        """Leave the connection usable, or let it go; whether it was lost."""
        condition = condition_of(error)
        if condition is not None:
            self.condition = condition
            self._failing_since = self._failing_since or self._busy_since
        connection = self._connection
        if connection is None:
            return False
        if not is_away(error) and not connection.invalidated:
            if committing or condition is Condition.READ_ONLY:
                # A commit that was refused leaves its transaction, and with it the lock, in the driver's hands. And
                # where the address of a standby is given to its successor, a new connection finds that one.
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

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()


def _refusal(error: Exception) -> Exception:
    """The driver's error as callers see it: what is the matter with the database, or the error itself."""
    return error if condition_of(error) is None else away(error)


def _appends(group: Sequence[QueuedWrite]) -> list[Append]:
    return [item.work for item in group if isinstance(item.work, Append)]


def _answer_appends(group: Sequence[QueuedWrite], outcomes: Sequence[Outcome]) -> None:
    for item, outcome in zip(group, outcomes, strict=True):
        item.result = outcome


def _apply(connection: Connection, group: Sequence[QueuedWrite]) -> None:
    first = group[0].work
    if isinstance(first, Append):
        _answer_appends(group, append_batch(connection, _appends(group)))
        return
    group[0].result = first(connection)
