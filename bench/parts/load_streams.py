"""Hundreds of readers of one run's stream: memory and connections of the API process before, while and after."""

import asyncio
import random
import time
from pathlib import Path

import httpx2

from tests.support.service import Service
from tests.support.waiting import wait_until

__all__ = ["hear_many"]

READER_COUNT = 500
SLOW_SHARE = RESET_SHARE = 0.1
HELD_S = 15.0
SLOW_S = 0.5
#: Connections that come and go for other reasons.
SPARE_COUNT = 10


async def hear_many(http: httpx2.AsyncClient, service: Service, thread_id: str) -> None:
    """Open the streams, hold them while the run goes on, reset a tenth, let all go, and print what it cost."""
    script = f'call lookup_order {{"order_id": "o-streams", "delay_ms": {round(HELD_S * 1000)}}}'
    body = {"assistant_id": "refund", "input": {"messages": [{"role": "user", "content": script}]}}
    run = (await http.post(f"/threads/{thread_id}/runs", json=body)).raise_for_status().json()
    before_kb, before_count = _rss_kb(service.pid), _descriptor_count(service.pid)
    path = f"{service.url}/threads/{thread_id}/runs/{run['run_id']}/stream"
    chance, opened = random.Random("streams"), asyncio.Semaphore(50)
    readers = [
        asyncio.create_task(_read(path, str(http.headers["x-api-key"]), chance.random(), opened))
        for _ in range(READER_COUNT)
    ]
    await asyncio.sleep(HELD_S / 2)
    held_kb, held_count = _rss_kb(service.pid), _descriptor_count(service.pid)
    received = await asyncio.gather(*readers)
    ended_at = time.perf_counter()
    await wait_until(
        lambda: _descriptor_count(service.pid) <= before_count + SPARE_COUNT,
        description="the streams' connections to be gone",
        timeout_s=60,
    )
    print(
        f"L6: {READER_COUNT} readers ({sum(received)} events received): RSS +{(held_kb - before_kb) / 1024:.0f} MB "
        f"while held, +{(_rss_kb(service.pid) - before_kb) / 1024:.0f} MB after; descriptors {before_count} before, "
        f"{held_count} while held, {_descriptor_count(service.pid)} after {time.perf_counter() - ended_at:.1f} s",
        flush=True,
    )


async def _read(path: str, key: str, kind: float, opened: asyncio.Semaphore) -> int:
    """Events received by one reader: a slow one, one that goes away in the middle, or one that stays."""
    count = 0
    async with httpx2.AsyncClient(timeout=60.0, verify=False, headers={"x-api-key": key}) as http:
        async with opened:
            stream = http.stream("GET", path)
            response = await stream.__aenter__()
        try:
            async for line in response.aiter_lines():
                count += line.startswith("event:")
                if kind < SLOW_SHARE:
                    await asyncio.sleep(SLOW_S)
                elif kind > 1 - RESET_SHARE:
                    return count
        finally:
            await stream.__aexit__(None, None, None)
    return count


def _rss_kb(pid: int) -> int:
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0])


def _descriptor_count(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
