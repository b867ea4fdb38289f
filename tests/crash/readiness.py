"""Watches `/ready` of every API of a fleet, and names the answers that were untrue."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import httpx2

from tests.crash.chaos import Storm
from tests.crash.fleet import Fleet

__all__ = ["watch_readiness"]

POLL_S = 0.1
#: An answer is at most a second old (docs/operations.md); the rest is for a loaded machine.
STALE_S_MAX = 2.0
ANSWER_S_MAX = 30.0


@contextlib.asynccontextmanager
async def watch_readiness(fleet: Fleet, storm: Storm) -> AsyncIterator[list[str]]:
    """The untrue answers so far: ready while PostgreSQL had been away for long, or not ready without a reason."""
    untrue: list[str] = []
    async with asyncio.TaskGroup() as group:
        watching = [group.create_task(_watch(url, storm, untrue)) for url in fleet.urls]
        try:
            yield untrue
        finally:
            for each in watching:
                each.cancel()


async def _watch(url: str, storm: Storm, untrue: list[str]) -> None:
    async with httpx2.AsyncClient(base_url=url, timeout=ANSWER_S_MAX, verify=False) as http:
        while True:
            asked_s = time.time()
            with contextlib.suppress(httpx2.TransportError):
                response = await http.get("/ready")
                answered_s = time.time()
                if response.is_success and storm.was_away_throughout(asked_s - STALE_S_MAX, answered_s):
                    untrue.append(f"{url} was ready at {answered_s:.3f}, and PostgreSQL was away: {storm.outages[-1:]}")
                if not response.is_success and not response.json().get("reasons"):
                    untrue.append(f"{url} was not ready and said no reason: {response.status_code} {response.text}")
            await asyncio.sleep(POLL_S)
