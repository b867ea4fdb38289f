"""Every-k fault enumeration: a coroutine that is cancelled at its k-th await."""

import asyncio
from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any

__all__ = ["cancelled_at"]


async def cancelled_at(work: Coroutine[Any, Any, object], nth: int) -> bool:
    """Run `work` in a task of its own and cancel the task where it waits for the `nth` time (from 1).

    False if it ended before, or all the same; what it raises is raised here.
    """
    task = asyncio.create_task(_watched(work, nth))
    try:
        await task
    except asyncio.CancelledError:
        return True
    return False


async def _watched(work: Coroutine[Any, Any, object], nth: int) -> None:
    await _counted(work, nth)


@coroutine
def _counted(work: Coroutine[Any, Any, object], nth: int) -> Generator[Any, Any, None]:
    """Hand on what `work` waits for, as `await` does, and count."""
    count = 0
    resume, value = work.send, None
    while True:
        try:
            waited_for = resume(value)
        except StopIteration:
            return
        count += 1
        if count == nth:
            task = asyncio.current_task()
            assert task is not None
            # Delivered where the task waits now: what it waits for is cancelled with it.
            task.cancel()
        try:
            resume, value = work.send, (yield waited_for)
        except BaseException as error:
            resume, value = work.throw, error
