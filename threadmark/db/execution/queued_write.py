"""Writes that are queued for a writer, and their replies."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from sqlalchemy import Connection

__all__ = ["Batched", "QueuedWrite", "Unit", "answer", "groups"]

Unit = Callable[[Connection], Any]
_LOG = logging.getLogger("threadmark.db")


class Batched(Protocol):
    """Work that is no unit: a value that its batching writes together with others of its kind."""

    @property
    def thread(self) -> int:
        """The number of the thread that it writes; work for one thread is applied in the order of the calls."""
        ...


class QueuedWrite:
    """A queued write, its waiter, and a token: taking the token gives the right to decide whether the write happens.

    No further attempt begins after `deadline` (an instant of `time.monotonic()`).
    """

    __slots__ = (
        "deadline",
        "error",
        "future",
        "is_answered",
        "loop",
        "repeatable",
        "result",
        "thread",
        "token",
        "work",
    )

    def __init__(
        self,
        work: Unit | Batched,
        loop: asyncio.AbstractEventLoop,
        *,
        thread: int | None,
        repeatable: bool,
        wait_s: float,
    ) -> None:
        self.work = work
        self.thread = thread if callable(work) else work.thread
        self.loop = loop
        self.repeatable = repeatable
        self.deadline = time.monotonic() + wait_s
        self.future: asyncio.Future[Any] = loop.create_future()
        self.is_answered = False
        self.token = [True]
        self.result: Any = None
        self.error: BaseException | None = None

    @property
    def is_unit(self) -> bool:
        """Whether the work is a function over a connection, and not a value that is written with others."""
        return callable(self.work)

    async def answered(self) -> None:
        """Wait for the reply although the caller is gone."""
        if not self.is_answered:
            # The original future was cancelled with its waiter.
            self.future = self.loop.create_future()
            await asyncio.wait([self.future])
        if not self.future.cancelled():
            self.future.exception()

    def take(self) -> bool:
        """Whether the caller has the right to decide from now on; true once."""
        try:
            self.token.pop()
        except IndexError:
            return False
        return True


def groups(batch: Sequence[QueuedWrite]) -> list[list[QueuedWrite]]:
    """Group all batched works together, and every unit by itself.

    The batched works go first, wherever they were queued, as one statement; but never before a unit for the same thread
    that was queued earlier.
    """
    first: list[QueuedWrite] = []
    found: list[list[QueuedWrite]] = [first]
    written: set[int | None] = set()
    for item in batch:
        if item.is_unit:
            written.add(item.thread)
            found.append([item])
        elif item.thread not in written:
            first.append(item)
        elif not found[-1][0].is_unit:
            found[-1].append(item)
        else:
            found.append([item])
    return found if first else found[1:]


def answer(batch: Sequence[QueuedWrite]) -> None:
    """Resolve the futures of the waiters, each in its own event loop."""
    loops: dict[asyncio.AbstractEventLoop, list[QueuedWrite]] = {}
    for item in batch:
        loops.setdefault(item.loop, []).append(item)
    for loop, items in loops.items():
        try:
            loop.call_soon_threadsafe(_resolve, items)
        except RuntimeError:
            # The event loop has ended, and its waiters with it: the write is committed, without a waiter.
            _LOG.debug("a waiter's event loop was closed before its write was committed")


def _resolve(items: Sequence[QueuedWrite]) -> None:
    for item in items:
        item.is_answered = True
        if item.future.done():
            continue
        if item.error is not None:
            item.future.set_exception(item.error)
        else:
            item.future.set_result(item.result)
