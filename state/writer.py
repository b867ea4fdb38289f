"""One thread that owns one connection and commits for everybody: group commit without a timer.

It takes whatever is queued, applies it in one transaction, commits, and answers all waiters. When nothing is queued a
single write is committed at once; while a commit is on its way to the disk the next batch collects by itself.
"""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, Engine

from state.append import Append, Outcome, append_batch, begin_units, commit_appends
from state.errors import DatabaseAway, DatabaseClosed, OutcomeUnknown
from state.outage import is_away, is_passing
from state.pools import Pool

__all__ = ["BATCH_COUNT_MAX", "Writer"]

BATCH_COUNT_MAX = 256
#: How long a writer tries to reach a database that went away before its writes fail (seconds).
RECONNECT_S = 20.0
RECONNECT_DELAY_S = 0.05
HURRY_S = 0.5
Unit = Callable[[Connection], Any]
_LOG = logging.getLogger("threadmark.state")


class _Item:
    """A queued write, its waiter, and a token: who pops it decides whether the write happens."""

    __slots__ = ("error", "future", "is_answered", "loop", "repeatable", "result", "thread", "token", "work")

    def __init__(
        self, work: Unit | Append, loop: asyncio.AbstractEventLoop, *, thread: int | None, repeatable: bool
    ) -> None:
        self.work = work
        self.thread = thread
        self.loop = loop
        self.repeatable = repeatable
        self.future: asyncio.Future[Any] = loop.create_future()
        self.is_answered = False
        self.token = [True]
        self.result: Any = None
        self.error: BaseException | None = None

    async def answered(self) -> None:
        """Wait for the answer that nobody reads any more."""
        if not self.is_answered:
            # The one that was waited for went with its waiter.
            self.future = self.loop.create_future()
            await asyncio.wait([self.future])
        if not self.future.cancelled():
            self.future.exception()

    def take(self) -> bool:
        try:
            self.token.pop()
        except IndexError:
            return False
        return True


class Writer:
    """Applies writes in the order in which they were queued, many to a commit."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._closed = False
        #: How long a write may wait for a database that is away (seconds).
        self._patience_s = RECONNECT_S
        self._connection: Connection | None = None
        self.commit_count = 0
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    async def submit(self, work: Unit | Append, *, thread: int | None = None, repeatable: bool) -> Any:
        """The result of `work`, after its commit. `thread` is the one that a unit writes, if it has to keep an order.

        A unit that raises is undone alone and raises here. A caller cancelled before its write began leaves nothing;
        one cancelled later waits for the commit that is on its way and is cancelled then. Raises OutcomeUnknown when
        the connection was lost during the commit of work that cannot be repeated.
        """
        if self._closed:
            raise DatabaseClosed("the database is closed")
        item = _Item(work, asyncio.get_running_loop(), thread=thread, repeatable=repeatable)
        self._queue.put(item)
        try:
            return await item.future
        except asyncio.CancelledError:
            if not item.take():
                await item.answered()
            raise

    def hurry(self) -> None:
        """The process is about to end: a write waits for a database that is away no longer than HURRY_S from now on."""
        self._patience_s = min(self._patience_s, HURRY_S)

    async def close(self) -> None:
        """Commit what is queued, then end the thread."""
        self._closed = True
        self.hurry()
        self._queue.put(None)
        joining = Pool("threadmark-join", 1)
        await joining.run(self._thread.join)
        joining.shutdown()

    def _serve(self) -> None:
        try:
            while True:
                batch, more = self._next_batch()
                if batch:
                    self._commit(batch)
                    _answer(batch)
                if not more:
                    return
        finally:
            self._drop_connection()

    def _next_batch(self) -> tuple[list[_Item], bool]:
        item = self._queue.get()
        batch: list[_Item] = []
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

    def _commit(self, batch: list[_Item]) -> None:
        committing = False
        try:
            connection = self._connect()
            if all(isinstance(item.work, Append) for item in batch):
                committing = True
                _answer_appends(batch, commit_appends(connection, _appends(batch)))
            else:
                with begin_units(connection) as transaction:
                    for group in _groups(batch):
                        _apply(connection, group)
                    committing = True
                    transaction.commit()
            self.commit_count += 1
        except Exception as error:
            self._again(batch, error, unknown=self._recover(error, committing=committing) and committing)

    def _again(self, batch: list[_Item], error: Exception, *, unknown: bool) -> None:
        """After a failure: every write again, alone, so that a bad one does not fail its neighbours."""
        for item in batch:
            item.result = item.error = None
        if unknown:
            for item in [each for each in batch if not each.repeatable]:
                item.error = OutcomeUnknown(str(error))
                item.error.__cause__ = error
                batch = [each for each in batch if each is not item]
        elif len(batch) == 1 and not is_passing(error):
            batch[0].error = error
            return
        began = time.monotonic()
        for item in batch:
            self._alone(item, began)

    def _alone(self, item: _Item, began: float) -> None:
        while True:
            committing = False
            try:
                connection = self._connect()
                if isinstance(item.work, Append):
                    committing = True
                    (item.result,) = commit_appends(connection, [item.work])
                else:
                    with begin_units(connection) as transaction:
                        _apply(connection, [item])
                        committing = True
                        transaction.commit()
                self.commit_count += 1
            except Exception as error:
                lost = self._recover(error, committing=committing)
                if lost and committing and not item.repeatable:
                    item.error = OutcomeUnknown(str(error))
                    return
                if not is_passing(error):
                    item.error = error
                    return
                if time.monotonic() - began > self._patience_s:
                    item.error = DatabaseAway(str(error))
                    item.error.__cause__ = error
                    return
                time.sleep(RECONNECT_DELAY_S)
            else:
                return

    def _connect(self) -> Connection:
        if self._connection is None:
            self._connection = self._engine.connect()
        return self._connection

    def _recover(self, error: Exception, *, committing: bool) -> bool:
        """Leave the connection usable, or let it go; whether it was lost."""
        connection = self._connection
        if connection is None:
            return False
        if not is_away(error) and not connection.invalidated:
            if committing:
                # A commit that was refused leaves its transaction, and with it the lock, in the driver's hands.
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


def _groups(batch: list[_Item]) -> list[list[_Item]]:
    """Appends together, every unit by itself.

    All appends go first, whatever they were queued between, and are one statement; but not before a unit for their own
    thread that was queued earlier.
    """
    first: list[_Item] = []
    groups: list[list[_Item]] = [first]
    written: set[int | None] = set()
    for item in batch:
        if not isinstance(item.work, Append):
            written.add(item.thread)
            groups.append([item])
        elif item.work.thread not in written:
            first.append(item)
        elif isinstance(groups[-1][0].work, Append):
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups if first else groups[1:]


def _appends(group: Sequence[_Item]) -> list[Append]:
    return [item.work for item in group if isinstance(item.work, Append)]


def _answer_appends(group: Sequence[_Item], outcomes: Sequence[Outcome]) -> None:
    for item, outcome in zip(group, outcomes, strict=True):
        item.result = outcome


def _apply(connection: Connection, group: Sequence[_Item]) -> None:
    first = group[0].work
    if isinstance(first, Append):
        _answer_appends(group, append_batch(connection, _appends(group)))
        return
    group[0].result = first(connection)


def _answer(batch: list[_Item]) -> None:
    loops: dict[asyncio.AbstractEventLoop, list[_Item]] = {}
    for item in batch:
        loops.setdefault(item.loop, []).append(item)
    for loop, items in loops.items():
        try:
            loop.call_soon_threadsafe(_resolve, items)
        except RuntimeError:
            # The loop has ended with its waiters: the write stands, nobody is left to be told.
            _LOG.debug("a waiter's event loop was closed before its commit was answered")


def _resolve(items: list[_Item]) -> None:
    for item in items:
        item.is_answered = True
        if item.future.done():
            continue
        if item.error is not None:
            item.future.set_exception(item.error)
        else:
            item.future.set_result(item.result)
