"""One thread that owns one connection and commits for everybody: group commit without a timer.

It takes whatever is queued, applies it in one transaction, commits, and answers all waiters. When nothing is queued a
single write is committed at once; while a commit is on its way to the disk the next batch collects by itself.
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine

from state.append import Append, append_batch, commit_appends

__all__ = ["BATCH_COUNT_MAX", "DatabaseClosed", "Writer"]

BATCH_COUNT_MAX = 256
T = TypeVar("T")
Unit = Callable[[Connection], Any]
_LOG = logging.getLogger("threadmark.state")


class DatabaseClosed(RuntimeError):
    """The database was closed; nothing was written."""


class _Item:
    """A queued write, its waiter, and a token: who pops it decides whether the write happens."""

    __slots__ = ("error", "future", "loop", "result", "token", "work")

    def __init__(self, work: Unit | Append, loop: asyncio.AbstractEventLoop) -> None:
        self.work = work
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.token = [True]
        self.result: Any = None
        self.error: BaseException | None = None

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
        self.commit_count = 0
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    async def submit(self, work: Unit | Append) -> Any:
        """The result of `work`, after its commit.

        A unit that raises is undone alone and raises here. A caller cancelled before its write began leaves nothing;
        one cancelled later waits for the commit that is on its way and is cancelled then.
        """
        if self._closed:
            raise DatabaseClosed("the database is closed")
        item = _Item(work, asyncio.get_running_loop())
        self._queue.put(item)
        try:
            return await asyncio.shield(item.future)
        except asyncio.CancelledError:
            if not item.take():
                await asyncio.wait([item.future])
                if not item.future.cancelled():
                    item.future.exception()
            raise

    async def close(self) -> None:
        """Commit what is queued, then end the thread."""
        self._closed = True
        self._queue.put(None)
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)

    def _serve(self) -> None:
        connection = self._engine.connect()
        try:
            while True:
                batch, more = self._next_batch()
                if batch:
                    connection = self._commit(connection, batch)
                    _answer(batch)
                if not more:
                    return
        finally:
            connection.close()

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

    def _commit(self, connection: Connection, batch: list[_Item]) -> Connection:
        try:
            if all(isinstance(item.work, Append) for item in batch):
                _answer_appends(batch, commit_appends(connection, _appends(batch)))
            else:
                with connection.begin():
                    for group in _runs_of_appends(batch):
                        _apply(connection, group)
            self.commit_count += 1
        except Exception as error:
            connection = self._recover(connection)
            if len(batch) == 1:
                batch[0].result, batch[0].error = None, error
                return connection
            # One bad write must not fail its neighbours: every one again, alone.
            for item in batch:
                item.result = item.error = None
                connection = self._commit(connection, [item])
        return connection

    def _recover(self, connection: Connection) -> Connection:
        if not connection.invalidated and not connection.closed:
            try:
                if connection.in_transaction():
                    connection.rollback()
            except Exception:
                _LOG.warning("rollback failed; taking a new connection", exc_info=True)
            else:
                return connection
        connection.close()
        return self._engine.connect()


def _runs_of_appends(batch: list[_Item]) -> list[list[_Item]]:
    """Neighbouring appends together, every unit by itself, in order."""
    groups: list[list[_Item]] = []
    for item in batch:
        if isinstance(item.work, Append) and groups and isinstance(groups[-1][0].work, Append):
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def _appends(group: Sequence[_Item]) -> list[Append]:
    return [item.work for item in group if isinstance(item.work, Append)]


def _answer_appends(group: Sequence[_Item], outcomes: Sequence[int | None]) -> None:
    for item, outcome in zip(group, outcomes, strict=True):
        item.result = outcome


def _apply(connection: Connection, group: Sequence[_Item]) -> None:
    first = group[0].work
    if isinstance(first, Append):
        _answer_appends(group, append_batch(connection, _appends(group)))
        return
    try:
        with connection.begin_nested():
            group[0].result = first(connection)
    except Exception as error:
        if connection.invalidated:
            raise
        group[0].error = error


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
        if item.future.done():
            continue
        if item.error is not None:
            item.future.set_exception(item.error)
        else:
            item.future.set_result(item.result)
