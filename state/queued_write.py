"""Writes that wait for a writer, and their answers."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection

from threadmark.state.append.append_batch import Append

__all__ = ["QueuedWrite", "Unit", "answer", "groups"]

Unit = Callable[[Connection], Any]
_LOG = logging.getLogger("threadmark.state")


class QueuedWrite:
    """A queued write, its waiter, and a token: who pops it decides whether the write happens.

    `deadline` is the instant of `time.monotonic()` after which no further attempt begins.
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
        work: Unit | Append,
        loop: asyncio.AbstractEventLoop,
        *,
        thread: int | None,
        repeatable: bool,
        wait_s: float,
    ) -> None:
        self.work = work
        self.thread = thread
        self.loop = loop
        self.repeatable = repeatable
        self.deadline = time.monotonic() + wait_s
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
        """Whether the caller decides from now on: true once."""
        try:
            self.token.pop()
        except IndexError:
            return False
        return True


def groups(batch: Sequence[QueuedWrite]) -> list[list[QueuedWrite]]:
    """Appends together, every unit by itself.

    All appends go first, whatever they were queued between, and are one statement; but not before a unit for their own
    thread that was queued earlier.
    """
    first: list[QueuedWrite] = []
    found: list[list[QueuedWrite]] = [first]
    written: set[int | None] = set()
    for item in batch:
        if not isinstance(item.work, Append):
            written.add(item.thread)
            found.append([item])
        elif item.work.thread not in written:
            first.append(item)
        elif isinstance(found[-1][0].work, Append):
            found[-1].append(item)
        else:
            found.append([item])
    return found if first else found[1:]


def answer(batch: Sequence[QueuedWrite]) -> None:
    """Wake the waiters, each in its own event loop."""
    loops: dict[asyncio.AbstractEventLoop, list[QueuedWrite]] = {}
    for item in batch:
        loops.setdefault(item.loop, []).append(item)
    for loop, items in loops.items():
        try:
            loop.call_soon_threadsafe(_resolve, items)
        except RuntimeError:
            # The loop has ended with its waiters: the write stands, and nobody waits for it.
            _LOG.debug("a waiter's event loop was closed before its commit was answered")


def _resolve(items: Sequence[QueuedWrite]) -> None:
    for item in items:
        item.is_answered = True
        if item.future.done():
            continue
        if item.error is not None:
            item.future.set_exception(item.error)
        else:
            item.future.set_result(item.result)
