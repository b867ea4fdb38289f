"""How long an event loop is held: the processor time of each callback, in the loop's own thread.

Processor time, so that a busy machine, another thread or a garbage collection elsewhere is not taken for a handler.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

__all__ = ["Holds", "measured"]


@dataclass
class Holds:
    """The longest that one callback held the loop (seconds of processor time), and which it was."""

    longest_s: float = 0.0
    callback: str = ""


@contextmanager
def measured() -> Iterator[Holds]:
    """Measure every callback of the running loop, which is one of asyncio's own."""
    holds, run = Holds(), asyncio.Handle._run

    def timed(handle: Any) -> Any:
        began_s = time.thread_time()
        try:
            return run(handle)
        finally:
            held_s = time.thread_time() - began_s
            if held_s > holds.longest_s:
                holds.longest_s, holds.callback = held_s, repr(handle)

    asyncio.Handle._run = timed  # type: ignore[method-assign, assignment]
    try:
        yield holds
    finally:
        asyncio.Handle._run = run  # type: ignore[method-assign]
