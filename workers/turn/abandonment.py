"""Leaving steps behind that are not wanted any more."""

import asyncio
import logging
from collections.abc import Collection
from typing import Any

__all__ = ["ABANDON_S", "abandon"]

#: How long a cancelled effect may clean up before the turn goes on without it.
ABANDON_S = 5.0
_LOG = logging.getLogger("threadmark.turn")


async def abandon(running: Collection[asyncio.Task[Any]]) -> None:
    """Cancel what still runs, and give it a moment to clean up."""
    if not running:
        return
    for task in running:
        task.cancel()
    _, stubborn = await asyncio.wait(running, timeout=ABANDON_S)
    for task in stubborn:
        _LOG.warning("a step swallowed its cancellation and was left behind: %r", task.get_coro())
