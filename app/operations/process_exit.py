"""How a process ends: by a signal, with 0, or because one of its long-lived tasks ended unasked, with 1."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from threadmark.workers.supervisor import Supervisor

__all__ = ["unless", "until_ended"]

T = TypeVar("T")


async def unless(stopping: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """What `work` returns; None when it was cut short because `stopping` was set. Raises what it raises."""
    working = asyncio.create_task(work)
    waiting = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        working.cancel()
        await asyncio.wait({working})
        # What it had opened by then is closed by its owner; what it met while it was cut short says nothing any more.
        return None if working.cancelled() or working.exception() else working.result()
    finally:
        waiting.cancel()
        await asyncio.wait({waiting})


async def until_ended(stopping: asyncio.Event, supervisor: Supervisor) -> int:
    """The exit code of a process that works until `stopping` is set, or until one of its loops or threads ends."""
    home, before = asyncio.get_running_loop(), threading.excepthook

    def thread_failed(failed: threading.ExceptHookArgs) -> None:
        before(failed)
        supervisor.fail(failed.thread.name if failed.thread else "a thread", home)

    threading.excepthook = thread_failed
    try:
        failing = asyncio.create_task(supervisor.failed())
        waiting = asyncio.create_task(stopping.wait())
        await asyncio.wait({failing, waiting}, return_when=asyncio.FIRST_COMPLETED)
        for each in (failing, waiting):
            each.cancel()
        return 0 if supervisor.failure is None else 1
    finally:
        threading.excepthook = before
